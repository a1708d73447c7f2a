"""A Ray of our own, or a cluster that is there, connected and left again without a trace.

Without an address a Ray of our own is started and stopped again. It listens on the loopback
interface only, asks for a token made for this run, sends no usage statistics, opens no dashboard,
writes nothing to the console, and its files are gone afterwards. With an address nothing of that
is touched: the cluster is its owner's.
"""

from __future__ import annotations

import contextlib
import functools
import logging
import os
import re
import secrets
import shutil
import signal
import socket
import sys
import tempfile
import threading
from collections.abc import Iterator
from importlib.metadata import version
from pathlib import Path
from typing import Any

from slotwise_workflows.errors import EndpointError, MissingExtraError, SlotwiseError

_SMALLEST_STORE = 100 * 2**20
_KNOCK_S = 10.0
_ANY_ENVIRONMENT = {
    "RAY_USAGE_STATS_ENABLED": "0",
    # Under `uv run` Ray would pack up the working directory and send it to the workers.
    "RAY_ENABLE_UV_RUN_RUNTIME_ENV": "0",
    # Read when Ray is imported: drops every line of what it prints on standard output, into the
    # middle of a result, when a worker or a node dies. `log_to_driver` does not reach that.
    "RAY_DEDUP_LOGS": "1",
    "RAY_DEDUP_LOGS_SKIP_REGEX": "^",
    # What was asked and is not waited for, since another answer was enough, is no error.
    "RAY_IGNORE_UNHANDLED_ERRORS": "1",
}
_STARTUP_ENVIRONMENT = {
    **_ANY_ENVIRONMENT,
    # Read when Ray is imported. "0" is how Ray is told, on every platform, that this machine
    # stays alone: then, and only then, all its servers bind to the loopback interface.
    "RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER": "0",
    "RAY_AUTH_MODE": "token",
    "RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO": "0",
}


def check_versions(ray: Any, address: str) -> None:
    """Asks every node that computes what it runs.

    Raises:
        EndpointError: One runs another slotwise, or none.
    """
    from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy

    def slotwise_there() -> tuple[str, str]:
        """Goes to the node by value, as a function in a function does: there may be no slotwise."""
        try:
            from importlib.metadata import version

            from slotwise_workflows.sweep.store import state_of_the_code

            return version("slotwise"), state_of_the_code()
        except ImportError as error:
            return str(error), ""

    ask = ray.remote(num_cpus=0, max_retries=0)(slotwise_there)
    asked = {
        node["NodeManagerAddress"]: ask.options(
            scheduling_strategy=NodeAffinitySchedulingStrategy(node["NodeID"], soft=False)
        ).remote()
        for node in ray.nodes()
        if node["Alive"] and node["Resources"].get("CPU")
    }
    here = slotwise_there()
    for node, answer in asked.items():
        there = ray.get(answer)
        if there != here:
            what = f"slotwise {there[0]}" if there[1] else f"no such slotwise ({there[0]})"
            other = "" if there[0] != here[0] else " of another build, or another NumPy or Numba"
            raise EndpointError(
                f"the cluster's node {node} has {what}{other}, and this is slotwise {here[0]}",
                where=address,
                hint="Install the same version of slotwise on every node",
            )


@contextlib.contextmanager
def session(workers: int, address: str | None, *, store_bytes: int = 0) -> Iterator[Any]:
    """A connected Ray; what was started here is stopped here, also when interrupted.

    Args:
        workers: Processors of a Ray of our own.
        address: Of an existing cluster, or None.
        store_bytes: What a Ray of our own must be able to share; it takes 100 MB at least.

    Raises:
        MissingExtraError: Ray is not installed.
        EndpointError: The cluster cannot be reached, or runs another Ray or Python.
        SlotwiseError: No Ray can be started here.
    """
    foreign = "ray" in sys.modules and not _token.cache_info().currsize
    with contextlib.ExitStack() as stack:
        if address is None:
            stack.enter_context(_environment(_STARTUP_ENVIRONMENT | {"RAY_AUTH_TOKEN": _token()}))
        else:
            stack.enter_context(_environment(_ANY_ENVIRONMENT))
        ray = _import_ray()
        if address is not None:
            _knock(address)
        if ray.is_initialized():  # a host program's own session: use it, leave it running
            yield ray
            return
        if address is None and foreign:
            raise SlotwiseError(
                "Ray cannot be started here",
                why="this program imported it before, and it is then open to the network",
                hint="Call ray.init() before, or work without Ray",
            )
        stack.enter_context(_silence("ray"))
        options: dict[str, Any] = {"log_to_driver": False, "configure_logging": False}
        if address is None:
            options |= {
                "address": "local",
                "num_cpus": workers,
                "num_gpus": 0,
                "include_dashboard": False,
                "object_store_memory": max(_SMALLEST_STORE, store_bytes),
                "_temp_dir": stack.enter_context(_short_directory()),
            }
        else:
            options["address"] = address
        stack.callback(ray.shutdown)
        try:
            with _signals_kept():
                ray.init(**options)
        except (ConnectionError, RuntimeError, ValueError, OSError) as error:
            raise _unreachable(address, error) from None
        yield ray


def ray_is_missing(instead: str) -> MissingExtraError:
    """What to do where Ray is not installed.

    Args:
        instead: What can be done without it.
    """
    return MissingExtraError(
        "the Ray engine is not installed",
        hint="In a checkout run: uv sync --extra ray; beside a bundle's wheel: "
        f'pip install "slotwise-{version("slotwise")}-py3-none-any.whl[ray]"; or {instead}',
    )


def _import_ray() -> Any:
    try:
        import ray
        import ray.exceptions
    except ImportError:
        raise ray_is_missing("work without Ray") from None
    return ray


@functools.cache
def _token() -> str:
    """A token for our own cluster; one a process, because Ray keeps the first it reads."""
    return secrets.token_hex(32)


@contextlib.contextmanager
def _environment(values: dict[str, str]) -> Iterator[None]:
    """Sets variables for Ray and its processes, and puts back what was there."""
    before = {name: os.environ.get(name) for name in values}
    os.environ.update(values)
    try:
        yield
    finally:
        for name, value in before.items():
            if value is None:
                os.environ.pop(name, None)
            else:
                os.environ[name] = value


@contextlib.contextmanager
def _silence(name: str) -> Iterator[None]:
    """Keeps a library's log off the console; its errors reach us as exceptions."""
    logger = logging.getLogger(name)
    handler = logging.NullHandler()
    propagate = logger.propagate
    logger.addHandler(handler)
    logger.propagate = False
    try:
        yield
    finally:
        logger.removeHandler(handler)
        logger.propagate = propagate


@contextlib.contextmanager
def _signals_kept() -> Iterator[None]:
    """Ray replaces the handler of SIGTERM; put ours back."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = signal.getsignal(signal.SIGTERM)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)


@contextlib.contextmanager
def _short_directory() -> Iterator[str]:
    """A private directory for Ray's sockets and logs, removed afterwards.

    The path of a Unix socket has room for about a hundred characters, and Ray needs most of them:
    macOS's own temporary directory is too deep.
    """
    directory = tempfile.mkdtemp(prefix="slotwise-", dir="/tmp" if os.name == "posix" else None)  # noqa: S108
    try:
        yield directory
    finally:
        shutil.rmtree(directory, ignore_errors=True)


def _knock(address: str) -> None:
    """Finds out in seconds whether anyone listens; Ray itself would try for minutes, aloud."""
    told = _last_started() if address == "auto" else address
    host, colon, port = told.removeprefix("ray://").rpartition(":")
    if not colon or not port.isdigit():
        return  # a form that Ray judges at once
    try:
        socket.create_connection((host.strip("[]"), int(port)), timeout=_KNOCK_S).close()
    except (OSError, OverflowError) as error:
        raise _unreachable(address, error) from None


def _last_started() -> str:
    """The address that ``auto`` means: Ray notes it at a start; empty if there is no note."""
    places = [os.environ.get("RAY_TMPDIR"), os.environ.get("TMPDIR"), "/tmp", tempfile.gettempdir()]  # noqa: S108
    for place in filter(None, places):
        with contextlib.suppress(OSError, UnicodeDecodeError):
            return (Path(place) / "ray" / "ray_current_cluster").read_text().strip()
    return ""


def _unreachable(address: str | None, error: Exception) -> SlotwiseError:
    why = one_line(error)
    found = re.findall(r"Ray: (\S+)\s+Python: (\S+)", str(error))
    if address is not None and len(found) == 2:
        there, here = (f"Ray {ray} and Python {python}" for ray, python in found)
        return EndpointError(
            f"the cluster runs {there}, and this is {here}",
            where=address,
            hint="Use the same versions here, or leave the address out to use this machine",
        )
    if address is None:
        return SlotwiseError("Ray cannot be started here", why=why, hint="Work without Ray")
    return EndpointError(
        "the Ray cluster cannot be reached",
        where=address,
        why=why,
        hint="Check the address, or leave it out to use this machine",
    )


def told(error: Exception, *, hint: str) -> SlotwiseError:
    """What a failed task means to the user.

    Args:
        error: Of Ray.
        hint: What can be done without Ray.
    """
    cause = getattr(error, "cause", None)
    if isinstance(cause, SlotwiseError):
        return cause
    if isinstance(cause, ImportError):
        return SlotwiseError(
            "a Ray worker cannot import slotwise",
            why=one_line(cause),
            hint="Install the same version of slotwise on every node of the cluster",
        )
    why = one_line(cause or error)
    return SlotwiseError("a Ray task failed", why=why, hint=hint)


def one_line(error: Exception) -> str:
    """An error's text, cut to what fits into a sentence."""
    return " ".join(str(error).split())[:200].rstrip(". ")
