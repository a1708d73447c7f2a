"""Continuous batching under a step cost: from event to event, not from token to token.

Between two events the running set does not change. B sequences decode in every iteration, what they
hold grows by B a time, and a prompt too long for one iteration advances by the same chunk a time:
the duration of m iterations is a quadratic in m. An event is an end, an arrival that can be
admitted, the last chunk of a prompt, or an iteration that needs more memory than is free.

Decode iterations are counted in ``rounds``. That makes what lies ahead plain numbers: a sequence
ends in a known round, and needs a new block in every round that is a known number modulo the block
size.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

from slotwise_sim.compiled import compiled, inlined
from slotwise_sim.kernels.control import DONE, STOP
from slotwise_sim.kernels.heap import join, leave
from slotwise_sim.kernels.records import Records
from slotwise_sim.kernels.server import (
    ENDLESS,
    MIXED,
    PAGED,
    SEPARATE,
    Rules,
    State,
    idle_servers,
)
from slotwise_sim.workload import Ints


class Prefill(NamedTuple):
    """What the next iteration prefills.

    Attributes:
        completed: Prompts that it completes, from the first in line.
        tokens: Of those prompts.
        squares: Attention's share of them.
        chunk: Tokens of the one after them.
        begun: Tokens of that one prefilled before.
        left: Tokens of that one to be prefilled, this chunk included.
    """

    completed: int
    tokens: int
    squares: float
    chunk: int
    begun: int
    left: int


def continuous_iterations(
    requests: Records, cost: Records, rules: Records, slots: int, control: Ints
) -> int:
    """Serves requests in order of arrival.

    O(log slots + block) an event, O(slots) a preemption.

    Args:
        requests: Of one server, in order of arrival, shape (n,), dtype `REFILLING`.
        cost: What iterations take, shape (slots + 1,), dtype `slotwise_sim.costs.ITERATION`.
        rules: Of the server, shape (1,), dtype `RULES`.
        slots: 1 <= slots <= n + 1.
        control: DONE is written, STOP is read.

    Returns:
        How often a request was preempted.
    """
    states, places, crossings = idle_servers(rules, slots, 1)
    _serve(requests, cost, rules[0], states[0], places[0], crossings[0], control)
    return int(states["preemptions"][0])


@compiled
def _serve(
    requests: Records,
    cost: Records,
    rules: Rules,
    state: State,
    slots: Records,
    crossings: Ints,
    control: Ints,
) -> None:
    while control[DONE] < len(requests) and control[STOP] == 0:
        admits_arrivals = admit(requests, rules, state, slots, None)
        if state.waiting + state.decoding == 0:
            state.now = requests[state.upcoming].arrival_s
            continue
        preempted = preempt(requests, rules, state, slots, crossings)
        batch = 0 if only_prefills(rules, state) else state.decoding
        prefill = plan_prefill(requests, rules, state, slots, batch)
        linear, quadratic = lasts(cost[batch], state, batch, prefill)
        steps = 1
        if prefill.completed == 0 and not preempted:
            steps = _alike(rules, state, slots, crossings, batch, prefill)
            if admits_arrivals:
                next_s = requests[state.upcoming].arrival_s
                steps = _steps_until(next_s, state.now, linear, quadratic, steps)
        state.now += linear * steps + quadratic * steps * steps
        if batch > 0:
            decode(requests, rules, state, slots, crossings, steps, control)
        yield_tokens(requests, rules, state, slots, crossings, prefill.completed, control)
        if prefill.chunk > 0:
            state.prefilled = prefill.begun + prefill.chunk * steps


@inlined
def admit(
    requests: Records, rules: Rules, state: State, slots: Records, following: Ints | None
) -> bool:
    """Admits who waits, in order, while a slot and memory are free.

    Args:
        requests: In order of arrival, unless ``following`` is there.
        rules: Of the server.
        state: Of the server.
        slots: Of the server.
        following: The row that stands in line behind each; None where that is the next one.

    Returns:
        Whether a request that arrives would be admitted at once.
    """
    spare = 1 if rules.reserve == PAGED else 0
    while state.vacancies > 0:
        again = state.returns > 0
        if again:
            row = slots[state.returns - 1].returned
        elif state.upcoming == len(requests):
            return False
        else:
            row = state.upcoming
            if requests[row].arrival_s > state.now:
                return True
        needed = _held_by_prompt(requests[row], rules)
        if needed + spare > state.free:
            return False
        state.free -= needed
        if again:
            state.returns -= 1
            requests[row].preempted_s += state.now - slots[state.returns].returned_s
        else:
            state.upcoming = row + 1 if following is None else following[row]
            requests[row].start_s = state.now
        state.vacancies -= 1
        slot = slots[state.vacancies].vacant
        slots[slot].row = row
        slots[slot].admission = state.admissions
        state.admissions += 1
        slots[_place(state, slots, state.waiting)].waiting = slot
        state.waiting += 1
    return False


@inlined
def preempt(requests: Records, rules: Rules, state: State, slots: Records, crossings: Ints) -> bool:
    """Preempts the most recently admitted until the next iteration's new blocks are free."""
    if rules.reserve != PAGED or only_prefills(rules, state):
        return False
    before = state.preemptions
    while crossings[state.rounds % rules.block] > state.free:
        if state.waiting > 0:  # whoever waits for prefill was admitted after all who decode
            state.waiting -= 1
            slot = slots[_place(state, slots, state.waiting)].waiting
            row = slots[slot].row
            state.free += _held_by_prompt(requests[row], rules)
            if state.waiting == 0:
                state.prefilled = -1
        else:
            newest = 0
            for place in range(1, state.decoding):
                if slots[slots[place].ending].admission > slots[slots[newest].ending].admission:
                    newest = place
            slot = slots[newest].ending
            row = slots[slot].row
            requests[row].generated = requests[row].output - (slots[newest].end - state.rounds)
            state.decoding = leave(slots, state.decoding, newest)
            _forget(requests[row], requests[row].generated, rules, state, crossings)
        slots[state.vacancies].vacant = slot
        state.vacancies += 1
        slots[state.returns].returned = row
        slots[state.returns].returned_s = state.now
        state.returns += 1
        state.preemptions += 1
    return state.preemptions > before


@inlined
def plan_prefill(
    requests: Records, rules: Rules, state: State, slots: Records, batch: int
) -> Prefill:
    """What fits beside the decoding sequences, from the first in line."""
    room = max(0, rules.max_batched - batch)
    completed, tokens, squares = 0, 0, 0.0
    while completed < state.waiting:
        request = requests[slots[slots[_place(state, slots, completed)].waiting].row]
        begun = state.prefilled if completed == 0 and state.prefilled >= 0 else request.cached
        whole = _tokens_to_prefill(request)
        left = whole - begun
        if left > room - tokens and not (rules.prefill == SEPARATE and completed == 0):
            chunk = room - tokens if rules.prefill == MIXED else 0
            return Prefill(completed, tokens, squares, chunk, begun, left)
        completed += 1
        tokens += left
        squares += float(whole) * whole - float(begun) * begun
    return Prefill(completed, tokens, squares, 0, 0, 0)


@inlined
def lasts(own: Any, state: State, batch: int, prefill: Prefill) -> tuple[float, float]:
    """The duration of m iterations that are all alike: linear m + quadratic m^2."""
    growth = own.kv_token_s * batch / 2
    held = state.held if batch > 0 else 0
    linear = (
        own.base_s
        + (own.kv_token_s * held - growth)
        + own.prefill_token_s * (prefill.tokens + prefill.chunk)
        + own.prefill_token2_s * (prefill.squares + 2.0 * prefill.begun * prefill.chunk)
    )
    return linear, growth + own.prefill_token2_s * prefill.chunk * prefill.chunk


@inlined
def _alike(
    rules: Rules, state: State, slots: Records, crossings: Ints, batch: int, prefill: Prefill
) -> int:
    """How many iterations pass before a sequence ends, a prompt does, or memory runs out."""
    steps = ENDLESS
    if batch > 0:
        steps = slots[0].end - state.rounds
        if rules.reserve == PAGED:
            steps = _rounds_that_fit(crossings, state.rounds, steps, batch, state.free)
    if prefill.chunk > 0:
        steps = min(steps, (prefill.left - 1) // prefill.chunk)
    return steps


@inlined
def _steps_until(arrival_s: float, now: float, linear: float, quadratic: float, most: int) -> int:
    """The first iteration that starts at or after an arrival, if it is among the next ``most``.

    The root of the quadratic is right but for rounding; whether an iteration starts late enough is
    decided by the same sum that moves the clock.
    """
    if now + (linear * most + quadratic * most * most) < arrival_s:
        return most
    gap = arrival_s - now
    root = linear + math.sqrt(linear * linear + 4 * quadratic * gap)
    steps = min(most, max(1, int(2 * gap / root)))
    while steps > 1:
        fewer = steps - 1
        if now + (linear * fewer + quadratic * fewer * fewer) < arrival_s:
            break
        steps = fewer
    while now + (linear * steps + quadratic * steps * steps) < arrival_s:
        steps += 1
    return steps


@inlined
def _execute(
    requests: Records,
    rules: Rules,
    state: State,
    slots: Records,
    crossings: Ints,
    batch: int,
    prefill: Any,
    steps: int,
    control: Ints,
) -> None:
    """So many alike iterations end at this instant."""
    if batch > 0:
        decode(requests, rules, state, slots, crossings, steps, control)
    yield_tokens(requests, rules, state, slots, crossings, prefill.completed, control)
    if prefill.chunk > 0:
        state.prefilled = prefill.begun + prefill.chunk * steps


@inlined
def decode(
    requests: Records,
    rules: Rules,
    state: State,
    slots: Records,
    crossings: Ints,
    steps: int,
    control: Ints,
) -> None:
    """Every decoding sequence yields ``steps`` tokens; some end."""
    if rules.reserve == PAGED:
        state.free -= _new_blocks(crossings, state.rounds, steps, state.decoding)
    state.rounds += steps
    state.held += state.decoding * steps
    while state.decoding > 0 and slots[0].end == state.rounds:
        slot = slots[0].ending
        request = requests[slots[slot].row]
        state.decoding = leave(slots, state.decoding, 0)
        _forget(request, request.output, rules, state, crossings)
        _end(request, slot, state, slots, control)


@inlined
def yield_tokens(
    requests: Records,
    rules: Rules,
    state: State,
    slots: Records,
    crossings: Ints,
    completed: int,
    control: Ints,
) -> None:
    """Prompts that are completed yield the first token, or after a preemption the next one."""
    for _ in range(completed):
        slot = slots[state.first].waiting
        state.first = _place(state, slots, 1)
        request = requests[slots[slot].row]
        if request.generated == 0:
            request.first_token_s = state.now
        remaining = request.output - request.generated - 1
        if remaining == 0:
            state.free += _held_by_prompt(request, rules)
            _end(request, slot, state, slots, control)
        else:
            tokens = _tokens_to_prefill(request)
            state.held += tokens + 1
            if rules.reserve == PAGED:
                crossings[(state.rounds - tokens) % rules.block] += 1
            state.decoding = join(slots, state.decoding, state.rounds + remaining, slot)
    if completed > 0:
        state.waiting -= completed
        state.prefilled = -1


@inlined
def _end(request: Any, slot: int, state: State, slots: Records, control: Ints) -> None:
    """A request has yielded its last token and gives its slot back."""
    request.own_end_s = state.now
    slots[state.vacancies].vacant = slot
    state.vacancies += 1
    control[DONE] += 1


@inlined
def _forget(request: Any, generated: int, rules: Rules, state: State, crossings: Ints) -> None:
    """A sequence that has generated so many tokens decodes no more: it holds nothing."""
    stored = request.prompt + generated - 1  # its last token was never stored
    state.held -= stored + 1
    if rules.reserve == PAGED:
        state.free += _blocks(stored, rules.block)
        crossings[(state.rounds - stored) % rules.block] -= 1
    else:
        state.free += request.reserved


@inlined
def only_prefills(rules: Rules, state: State) -> bool:
    """Whether nothing decodes in the next iteration."""
    return state.decoding == 0 or (rules.prefill == SEPARATE and state.waiting > 0)


@inlined
def _tokens_to_prefill(request: Any) -> int:
    """The prompt, and after a preemption all that had been generated."""
    return int(request.prompt) + int(request.generated)


@inlined
def _held_by_prompt(request: Any, rules: Rules) -> int:
    """Memory that a request takes when it is admitted: blocks, or the tokens reserved for it."""
    if rules.reserve == PAGED:
        return _blocks(_tokens_to_prefill(request), rules.block)
    return int(request.reserved)


@inlined
def _blocks(tokens: int, block: int) -> int:
    return (tokens + block - 1) // block


@inlined
def _place(state: State, slots: Records, position: int) -> int:
    """Where in its ring the line's ``position``-th stands."""
    place = state.first + position
    return place - len(slots) if place >= len(slots) else place


@inlined
def _new_blocks(crossings: Ints, rounds: int, steps: int, sequences: int) -> int:
    """Blocks that the sequences need for the next ``steps`` rounds."""
    block = len(crossings)
    blocks = steps // block * sequences
    place = rounds % block
    for _ in range(steps % block):
        blocks += crossings[place]
        place = 0 if place + 1 == block else place + 1
    return blocks


@inlined
def _rounds_that_fit(crossings: Ints, rounds: int, steps: int, sequences: int, free: int) -> int:
    """How many of the next ``steps`` rounds need no more blocks than are free."""
    block = len(crossings)
    fit = min(steps // block, free // sequences) * block  # so many in whole turns of the ring
    left = free - fit // block * sequences
    place = rounds % block
    while fit < steps and crossings[place] <= left:
        left -= crossings[place]
        place = 0 if place + 1 == block else place + 1
        fit += 1
    return fit
