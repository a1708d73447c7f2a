"""Continuous batching under a step cost: from event to event, not from token to token.

Between two events the running set does not change. B sequences decode in every iteration, what they
hold grows by B a time, and a prompt too long for one iteration advances by the same chunk a time:
the duration of m iterations is a quadratic in m. An event is an end, an arrival that can be
admitted, the last chunk of a prompt, or an iteration that needs more memory than is free.

Counting decode iterations in ``rounds`` makes everything that lies ahead a plain number: a sequence
ends in a known rounds, and needs a new block whenever the rounds is a known number modulo the block
size, so `crossings` holds how many sequences need one.
"""

from __future__ import annotations

import math

import numpy as np

from slotwise_sim.compiled import compiled
from slotwise_sim.kernels.control import DONE, STOP
from slotwise_sim.workload import Floats, Ints

UNLIMITED, PAGED, RESERVED = 0, 1, 2
MIXED, SEPARATE = 0, 1
ENDLESS = 1 << 62


@compiled
def _join(ends: Ints, ending: Ints, size: int, end: int, slot: int) -> int:
    """Puts a sequence into the heap; gives the heap's new size."""
    hole = size
    while hole > 0:
        parent = (hole - 1) // 2
        if ends[parent] <= end:
            break
        ends[hole], ending[hole] = ends[parent], ending[parent]
        hole = parent
    ends[hole], ending[hole] = end, slot
    return size + 1


@compiled
def _leave(ends: Ints, ending: Ints, size: int, place: int) -> int:
    """Takes the sequence at a place out of the heap; gives the heap's new size."""
    size -= 1
    end, slot = ends[size], ending[size]
    if place == size:
        return size
    hole = place
    while hole > 0 and ends[(hole - 1) // 2] > end:
        parent = (hole - 1) // 2
        ends[hole], ending[hole] = ends[parent], ending[parent]
        hole = parent
    child = 2 * hole + 1
    while child < size:
        if child + 1 < size and ends[child + 1] < ends[child]:
            child += 1
        if end <= ends[child]:
            break
        ends[hole], ending[hole] = ends[child], ending[child]
        hole = child
        child = 2 * hole + 1
    ends[hole], ending[hole] = end, slot
    return size


@compiled
def _new_blocks(crossings: Ints, rounds: int, steps: int, sequences: int) -> int:
    """Blocks that the sequences need for the next ``steps`` rounds."""
    block = len(crossings)
    blocks = steps // block * sequences
    place = rounds % block
    for _ in range(steps % block):
        blocks += crossings[place]
        place = 0 if place + 1 == block else place + 1
    return blocks


@compiled
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


@compiled
def _steps_until(arrival_s: float, now: float, linear: float, quadratic: float, most: int) -> int:
    """The first iteration that starts at or after an arrival, if it is among the next ``most``.

    The root of the quadratic is right but for rounding; whether an iteration starts late enough is
    decided by the same sum that moves the clock.
    """
    if now + (linear * most + quadratic * most * most) < arrival_s:
        return most
    gap = arrival_s - now
    root = linear + math.sqrt(linear * linear + 4 * quadratic * gap)
    steps = min(most, max(1, int(2 * gap / root))) if root > 0 else 1
    while (
        steps > 1
        and now + (linear * (steps - 1) + quadratic * (steps - 1) * (steps - 1)) >= arrival_s
    ):
        steps -= 1
    while steps < most and now + (linear * steps + quadratic * steps * steps) < arrival_s:
        steps += 1
    return steps


@compiled
def continuous_iterations(
    arrival_s: Floats,
    prompt: Ints,
    output: Ints,
    cached: Ints,
    slots: int,
    decode_s: Floats,
    kv_token_s: Floats,
    prefill_token_s: float,
    prefill_token2_s: float,
    prefill: int,
    max_batched: int,
    reserve: int,
    capacity: int,
    block: int,
    reserved: Ints,
    start_s: Floats,
    first_token_s: Floats,
    end_s: Floats,
    control: Ints,
) -> tuple[float, int]:
    """Serves requests in order of arrival; O(log slots) an event.

    Args:
        arrival_s: Ascending, shape (n,), like all columns of requests.
        prompt: Tokens.
        output: Tokens, >= 1.
        cached: Tokens of the prompt that need no prefill.
        slots: 1 <= slots <= n.
        decode_s: Seconds of an iteration by sequences decoding, shape (slots + 1,).
        kv_token_s: Seconds per token they hold, shape (slots + 1,).
        prefill_token_s: Seconds per prompt token prefilled.
        prefill_token2_s: Seconds per unit of attention's share.
        prefill: MIXED or SEPARATE.
        max_batched: Most tokens of an iteration; ENDLESS for no limit.
        reserve: UNLIMITED, PAGED or RESERVED.
        capacity: Blocks (PAGED) or tokens (RESERVED).
        block: Tokens of a block; 1 unless PAGED.
        reserved: Tokens held for life, shape (n,); read under RESERVED only.
        start_s: Written: first admission.
        first_token_s: Written: end of the iteration that first yields a token.
        end_s: Written: end of the iteration that yields the last token.
        control: DONE is written, STOP is read.

    Returns:
        Slot-seconds between start and end, less those preempted; and preemptions.
    """
    n = len(arrival_s)
    now = 0.0
    rounds = 0  # decode iterations so far
    busy_s, preemptions = 0.0, 0
    upcoming = 0  # the first request that has never been admitted
    free = capacity

    request_in = np.empty(slots, np.int64)
    admission_of = np.empty(slots, np.int64)  # ascends with every admission
    vacant = np.arange(slots)[::-1].copy()  # a stack of slots
    vacancies, admissions = slots, 0

    line = np.empty(slots, np.int64)  # a ring of slots whose prompts are not prefilled
    line_first, line_length = 0, 0
    prefilled = -1  # of the first in line; -1 before its first chunk

    ends = np.empty(slots + 1, np.int64)  # a heap: the round before which a sequence ends
    ending = np.empty(slots + 1, np.int64)  # and its slot
    decoding, held = 0, 0  # the heap's size; tokens those sequences hold in the next iteration
    crossings = np.zeros(block, np.int64)

    returned = np.empty(slots, np.int64)  # a stack of preempted requests, the head of the queue
    returned_s = np.empty(slots)
    returns = 0
    generated = np.zeros(n if reserve == PAGED else 0, np.int64)  # before the last preemption

    while control[DONE] < n and control[STOP] == 0:
        # Admission.
        admits_arrivals = False  # a request that arrives would be admitted at once
        while vacancies > 0:
            if returns > 0:
                request = returned[returns - 1]
            elif upcoming < n and arrival_s[upcoming] <= now:
                request = upcoming
            else:
                admits_arrivals = upcoming < n
                break
            if reserve == PAGED:
                needed = (prompt[request] + generated[request] + block - 1) // block
                if needed + 1 > free:
                    break
                free -= needed
            elif reserve == RESERVED:
                if reserved[request] > free:
                    break
                free -= reserved[request]
            if returns > 0:
                returns -= 1
                busy_s -= now - returned_s[returns]
            else:
                start_s[request] = now
                upcoming += 1
            vacancies -= 1
            slot = vacant[vacancies]
            request_in[slot] = request
            admission_of[slot] = admissions
            admissions += 1
            last = line_first + line_length
            line[last - slots if last >= slots else last] = slot
            line_length += 1
        if line_length + decoding == 0:
            now = arrival_s[upcoming]
            continue

        # Growth and preemption.
        decodes = decoding > 0 and not (prefill == SEPARATE and line_length > 0)
        preempted = False
        while reserve == PAGED and decodes and crossings[rounds % block] > free:
            preempted = True
            if line_length > 0:
                line_length -= 1
                last = line_first + line_length
                slot = line[last - slots if last >= slots else last]
                request = request_in[slot]
                free += (prompt[request] + generated[request] + block - 1) // block
                if line_length == 0:
                    prefilled = -1
            else:
                newest = 0
                for place in range(1, decoding):
                    if admission_of[ending[place]] > admission_of[ending[newest]]:
                        newest = place
                slot = ending[newest]
                request = request_in[slot]
                generated[request] = output[request] - (ends[newest] - rounds)
                tokens = prompt[request] + generated[request]
                held -= tokens
                free += (tokens + block - 2) // block
                crossings[(rounds - tokens + 1) % block] -= 1
                decoding = _leave(ends, ending, decoding, newest)
            vacant[vacancies] = slot
            vacancies += 1
            returned[returns] = request
            returned_s[returns] = now
            returns += 1
            preemptions += 1
        batch = decoding if decodes else 0

        # What is prefilled: the prompts that this iteration completes, or a chunk of the first.
        room = max(0, max_batched - batch)
        completed, tokens, squares = 0, 0, 0.0
        chunk, begun = 0, 0
        while completed < line_length:
            place = line_first + completed
            request = request_in[line[place - slots if place >= slots else place]]
            begun = cached[request]
            if completed == 0 and prefilled >= 0:
                begun = prefilled
            whole = prompt[request]
            if reserve == PAGED:
                whole += generated[request]
            if whole - begun > room - tokens and not (prefill == SEPARATE and completed == 0):
                if prefill == MIXED:
                    chunk = room - tokens
                break
            tokens += whole - begun
            squares += float(whole) * whole - float(begun) * begun
            completed += 1

        # How many iterations are alike, this one included.
        steps = ENDLESS
        if completed > 0 or preempted or not decodes:
            steps = 1
        if decodes:
            steps = min(steps, ends[0] - rounds)
            if reserve == PAGED and steps > 1:
                steps = _rounds_that_fit(crossings, rounds, steps, decoding, free)
        if completed == 0 and chunk > 0 and not preempted:
            if not decodes:
                steps = ENDLESS
            steps = min(steps, (whole - begun - 1) // chunk)

        # Their duration: linear m + quadratic m^2.
        growth = kv_token_s[batch] * batch / 2
        linear = decode_s[batch] + kv_token_s[batch] * held * (batch > 0) - growth
        linear += prefill_token_s * (tokens + chunk)
        linear += prefill_token2_s * (squares + 2.0 * begun * chunk)
        quadratic = growth + prefill_token2_s * chunk * chunk
        if admits_arrivals and steps > 1:
            steps = _steps_until(arrival_s[upcoming], now, linear, quadratic, steps)
        now += linear * steps + quadratic * steps * steps

        # The ends of decoding sequences.
        if batch > 0:
            if reserve == PAGED:
                free -= _new_blocks(crossings, rounds, steps, batch)
            rounds += steps
            held += batch * steps
            while decoding > 0 and ends[0] == rounds:
                slot = ending[0]
                request = request_in[slot]
                decoding = _leave(ends, ending, decoding, 0)
                held -= prompt[request] + output[request]
                if reserve == PAGED:
                    last_stored = prompt[request] + output[request] - 1
                    free += (last_stored + block - 1) // block
                    crossings[(rounds - last_stored) % block] -= 1
                elif reserve == RESERVED:
                    free += reserved[request]
                end_s[request] = now
                busy_s += now - start_s[request]
                vacant[vacancies] = slot
                vacancies += 1
                control[DONE] += 1

        # The prompts that are prefilled yield a token.
        for _ in range(completed):
            slot = line[line_first]
            line_first = 0 if line_first + 1 == slots else line_first + 1
            request = request_in[slot]
            before = generated[request] if reserve == PAGED else 0
            if before == 0:
                first_token_s[request] = now
            tokens = prompt[request] + before
            remaining = output[request] - before - 1
            if remaining == 0:
                if reserve == PAGED:
                    free += (tokens + block - 1) // block
                elif reserve == RESERVED:
                    free += reserved[request]
                end_s[request] = now
                busy_s += now - start_s[request]
                vacant[vacancies] = slot
                vacancies += 1
                control[DONE] += 1
            else:
                held += tokens + 1
                if reserve == PAGED:
                    crossings[(rounds - tokens) % block] += 1
                decoding = _join(ends, ending, decoding, rounds + remaining, slot)
        line_length -= completed
        if completed > 0:
            prefilled = -1
        if chunk > 0:
            prefilled = begun + chunk * steps
    return busy_s, preemptions
