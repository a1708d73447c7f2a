"""What a sweep finds, as rows: the columns of its two tables."""

from __future__ import annotations

from dataclasses import dataclass

from slotwise_workflows.sweep.points import Arrivals


@dataclass(frozen=True, slots=True)
class Row:
    """One policy at one point; the columns of ``sweep.parquet``, in this order.

    Attributes:
        cost: What tokens or iterations cost, by name.
        slots: Requests one server runs at once.
        replicas: Servers behind the balancer.
        balancer: How requests are spread over them.
        length_cv: Coefficient of variation that output lengths were respread to; None: their own.
        arrivals: At the traffic's times, as users get answers, or all from the start.
        load: Times the traffic's own arrival rate; None where its times are not used.
        users: Of a closed loop; None elsewhere.
        policy: The policy's name.
        replication: Which resampling of the traffic, from 0.
        seed: Of that resampling.
        requests: How many requests were replayed.
        latency_mean_s: Mean time from arrival to the whole answer.
        latency_p95_s: Its 95th percentile.
        queue_delay_mean_s: Mean time from arrival to start.
        ttft_p95_s: 95th percentile of the time from arrival to the first token.
        idle_share: Slot-time without a token being made, of all slot-time.
        requests_per_s: Requests completed per second, over the whole replay.
        output_tokens_per_s: Tokens likewise.
        makespan_s: When the last request ended.
        preemptions: How often a request lost its memory and was begun again.
        utilisation: Requests offered per second over what this policy can sustain on these slots;
            above 1 the server is overloaded, and its times grow with the length of the replay.
            None where nothing is offered by itself: in a closed loop, and all at once.
        gain: What this policy can sustain over what batches in order of arrival can, same slots
            and cost: the first static or dynamic policy. None with fewer requests than slots.
        latency_ratio: The baseline's mean latency over this one's; the baseline is the first
            batch-at-once policy, or the first policy where there is none.
    """

    cost: str
    slots: int
    replicas: int
    balancer: str
    length_cv: float | None
    arrivals: Arrivals
    load: float | None
    users: int | None
    policy: str
    replication: int
    seed: int
    requests: int
    latency_mean_s: float
    latency_p95_s: float
    queue_delay_mean_s: float
    ttft_p95_s: float
    idle_share: float
    requests_per_s: float
    output_tokens_per_s: float
    makespan_s: float
    preemptions: int
    utilisation: float | None
    gain: float | None
    latency_ratio: float


@dataclass(frozen=True, slots=True)
class Limit:
    """Where one policy is just enough, at one server; the columns of ``limits.parquet``.

    Attributes:
        cost: As in `Row`, like all up to ``seed``.
        slots: Of one server.
        replicas: Servers behind the balancer.
        balancer: How requests are spread over them.
        length_cv: Coefficient of variation of the output lengths; None: their own.
        policy: The policy's name.
        replication: Which resampling of the traffic, from 0.
        seed: Of that resampling.
        gain: As in `Row`.
        capacity_load: The highest load, in times the traffic's own arrival rate, that the policy
            sustains and at which every objective is met; 0 where none does. None where the traffic
            has no times of its own, or fewer requests than slots.
        capacity_per_s: The same in requests per second.
        servers_needed: Fewest servers of this kind that carry the traffic as it is and meet every
            objective. None where neither 1,024 nor as many as get a full batch each do, and where
            ``capacity_load`` is None.
        break_even_load: The lowest load at which this policy is worth having in place of the
            baseline: the mean latency falls by ``waiting_adopt``; or the baseline is overloaded, if
            the gain in capacity over it is ``gain_adopt`` or more. 0 where every load is. None of
            the baseline itself, where no load is, and where ``capacity_load`` is None.
        break_even_until: The load up to which it is: where capacity gains less, both are overloaded
            in the end, and the wait is as long under either. None where there is no such end, and
            where ``break_even_load`` is None.
        break_even_cv: The least coefficient of variation of the output lengths at which the gain in
            capacity over the baseline is ``gain_adopt``. 0 where every one is. None of the baseline
            itself, and where none up to 4 does, or as far as these requests can vary and fit;
            searched once a server, at the lengths' own variation.
    """

    cost: str
    slots: int
    replicas: int
    balancer: str
    length_cv: float | None
    policy: str
    replication: int
    seed: int
    gain: float | None
    capacity_load: float | None
    capacity_per_s: float | None
    servers_needed: int | None
    break_even_load: float | None
    break_even_until: float | None
    break_even_cv: float | None
