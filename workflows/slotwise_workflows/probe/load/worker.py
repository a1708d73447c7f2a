"""One process of several that send a load together: what Ray makes an actor of.

While it sends, nothing of Ray is in its timing path.
"""

from __future__ import annotations

import asyncio
import os
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from slotwise_workflows.errors import SlotwiseError, UsageError
from slotwise_workflows.probe.load.generator import open_loop, tallied
from slotwise_workflows.probe.load.model import Schedule, Sent
from slotwise_workflows.probe.model import Sample, Stage
from slotwise_workflows.probe.tally import Tally
from slotwise_workflows.probe.wire.client import Connection, new_client


@dataclass(frozen=True, slots=True)
class Job:
    """What a worker is told. No key: that is in its environment.

    Attributes:
        share: What it sends.
        settings: Fields of its `Connection`, but those of the process.
        stage: Of the samples.
        key_variable: Environment variable that holds the API key, or None for no key.
        max_in_flight: See `Client`.
        give_up_after: See `Client`.
        seconds: After which requests are given up, from the start.
    """

    share: Schedule
    settings: Mapping[str, Any]
    stage: Stage
    key_variable: str | None
    max_in_flight: int
    give_up_after: int | None
    seconds: float


class Worker:
    """A process that sends a share."""

    def __init__(self, code: str) -> None:
        from slotwise_workflows.sweep.store import state_of_the_code

        if state_of_the_code() != code:
            raise SlotwiseError(
                "a node of the cluster runs another slotwise than this one, or other libraries",
                hint="Install the same on every node",
            )
        self._tally = Tally()
        self._start_ns = 0

    def wall_ns(self, key_variable: str | None) -> int:
        """The time by this machine's wall clock; also, whether the key is here."""
        _key(key_variable)
        return time.time_ns()

    def send(self, job: Job, start_wall_ns: int) -> tuple[Sent, int]:
        """Waits for the start, sends the share.

        Args:
            job: What is sent.
            start_wall_ns: The start, by this machine's wall clock.

        Returns:
            What became of it, and the start by this process's monotonic clock.
        """
        self._start_ns = time.perf_counter_ns() + start_wall_ns - time.time_ns()
        return asyncio.run(send_share(job, self._start_ns, self._tally)), self._start_ns

    def so_far(self) -> tuple[int, Sequence[Sample], int]:
        """Asked amid `send`: requests sent, those answered, and the start as above."""
        return self._tally.requests, list(self._tally.samples), self._start_ns


async def send_share(job: Job, start_ns: int, tally: Tally) -> Sent:
    """Sends a share over connections of this process's own.

    Args:
        job: What is sent.
        start_ns: When its schedule begins, by `time.perf_counter_ns`.
        tally: Of what is sent.

    Raises:
        UsageError: The key is not in this process's environment.
    """
    left_s = (start_ns - time.perf_counter_ns()) / 1e9 + job.seconds
    deadline = asyncio.get_running_loop().time() + left_s
    async with new_client(_key(job.key_variable), job.settings["target"]) as http:
        connection = Connection(
            client=http, clock=time.perf_counter_ns, deadline=deadline, **job.settings
        )
        client = replace(
            tallied(tally, connection, job.stage),
            max_in_flight=job.max_in_flight,
            give_up_after=job.give_up_after,
            stop_ns=start_ns + round(job.seconds * 1e9),
        )
        return await open_loop(client, job.share.requests, job.share.at_s, start_ns=start_ns)


def _key(variable: str | None) -> str | None:
    if variable is None:
        return None
    key = os.environ.get(variable)
    if not key:
        raise UsageError(
            f"the environment variable {variable} is not set where a worker runs",
            hint="Set it on every machine of the cluster, before Ray is started there",
        )
    return key
