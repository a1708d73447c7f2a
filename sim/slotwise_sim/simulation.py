"""Replays a workload under a policy: who starts when, and when each is done.

Static, dynamic, binned and continuous batching run the same requests on the same slots at the same
cost. Only the order of filling differs. Serial serving is any of them with one slot.

Servers are simulated `apart` where they can be, and `coupled` where requests hang on one another. A
new policy is one more case in each.
"""

from __future__ import annotations

from collections.abc import Callable

from slotwise_sim.apart import serve_apart
from slotwise_sim.costs import Cost, PerToken
from slotwise_sim.coupled import serve_coupled
from slotwise_sim.memory import Memory, check_fits
from slotwise_sim.outcome import Outcome
from slotwise_sim.policies import Continuous, Policy, answers_together, one_of
from slotwise_sim.users import Balancer, Users
from slotwise_sim.workload import Workload


def simulate(
    workload: Workload,
    policy: Policy,
    cost: Cost,
    *,
    slots: int,
    replicas: int = 1,
    memory: Memory | None = None,
    balancer: Balancer = "round_robin",
    users: Users | None = None,
    on_progress: Callable[[int, int], None] | None = None,
) -> Outcome:
    """Serves the workload first come, first served.

    Equal arrivals keep their order in the workload. Without users or a balancer that looks at its
    replicas, each of these is simulated apart, which is faster.

    Args:
        workload: The requests, in any order.
        policy: The order of filling.
        cost: How long tokens take.
        slots: Requests one replica can run at once, >= 1.
        replicas: Servers of ``slots`` slots each, >= 1.
        memory: KV memory of each replica. It limits continuous batching; batches are assumed to
            fit. None never limits.
        balancer: Which replica an arriving request is sent to.
        users: Users who await their answers, in place of the workload's own arrivals; None has
            requests arrive whatever becomes of those before.
        on_progress: Hears now and then how many requests of how many are done; of a replay that is
            over in a moment it hears nothing.

    Returns:
        The times of every request, in the order of the workload.

    Raises:
        ValueError: ``slots`` or ``replicas`` is below 1; memory is given beside a cost per token;
            caps that are to be reserved are not known; not every request has a time to think.
        NeverFitsError: A request is larger than the memory.
    """
    if slots < 1:
        raise ValueError(f"slots must be >= 1, got {slots}")
    if replicas < 1:
        raise ValueError(f"replicas must be >= 1, got {replicas}")
    if memory is not None and isinstance(cost, PerToken):
        raise ValueError("KV memory limits a step cost only")
    one_of(Balancer, "balancer", balancer)
    if users is not None and len(users.think_s) != len(workload):
        raise ValueError(f"think_s needs {len(workload)} times, not {len(users.think_s)}")
    if memory is not None and isinstance(policy, Continuous):
        check_fits(workload, memory)
    if users is not None or (balancer == "least_busy" and replicas > 1):
        served = serve_coupled(
            workload, policy, cost, slots, replicas, memory, balancer, users, on_progress
        )
    else:
        served = serve_apart(workload, policy, cost, slots, replicas, memory, on_progress)
    times = served.times
    held_until_s = times.get("held_until_s", times["own_end_s"])
    return Outcome(
        arrival_s=times.get("arrival_s", workload.arrival_s),
        output_tokens=workload.output_tokens,
        start_s=times["start_s"],
        first_token_s=times["first_token_s"],
        own_end_s=times["own_end_s"],
        end_s=held_until_s if answers_together(policy) else times["own_end_s"],
        held_until_s=held_until_s,
        preempted_s=times.get("preempted_s"),
        slots=slots * replicas,
        busy_slot_s=served.busy_slot_s,
        preemptions=served.preemptions,
    )
