"""The article's 600 requests, made again by its own generator, and the even-lengths control.

The article ("static and continuous batching on eight slots") draws three uniform numbers per
request from a 32-bit xorshift generator: the gap to the next arrival, whether the answer is long,
and how long. The arithmetic is in whole numbers, so every machine makes the same requests.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import replace
from itertools import islice

import numpy as np

from slotwise_sim.workload import Workload

SEED = 20260818
REQUESTS = 600
RATE_PER_S = 12
SLOTS = 8
MS_PER_TOKEN = 8.0
CONTROL_TOKENS = 150


def article_workload(seed: int = SEED, requests: int = REQUESTS) -> Workload:
    """The article's traffic: 12 requests a second, 15 % of 400-999 tokens, the rest of 40-199.

    Args:
        seed: State the generator starts from, 1 to 2**32 - 1; the article's by default. Others
            give further replications of the same experiment.
        requests: How many.

    Returns:
        Requests in order of arrival, in seconds from the article's own zero (the first arrives at
        0.184 s). Prompts are not part of the article: all zero.

    Raises:
        ValueError: The seed is out of range; xorshift never leaves the state 0.
    """
    if not 0 < seed < 2**32:
        raise ValueError(f"seed must be from 1 to 2**32 - 1, got {seed}")
    uniform = _xorshift32(seed)
    arrival_s, output_tokens = np.empty(requests), np.empty(requests, dtype=np.int64)
    now_s = 0.0
    for request in range(requests):
        gap, kind, length = islice(uniform, 3)
        now_s += -math.log(gap) / RATE_PER_S
        arrival_s[request] = now_s
        output_tokens[request] = 400 + int(600 * length) if kind < 0.15 else 40 + int(160 * length)
    return Workload(arrival_s, output_tokens, np.zeros(requests, dtype=np.int64))


def control_workload() -> Workload:
    """The article's arrivals with every output of 150 tokens: nothing for refilling to gain."""
    article = article_workload()
    return replace(article, output_tokens=np.full(len(article), CONTROL_TOKENS, dtype=np.int64))


def _xorshift32(state: int) -> Iterator[float]:
    """Uniform numbers in (0, 1): Marsaglia's xorshift, shifts 13, 17 and 5, divided by 2**32."""
    while True:
        state ^= state << 13 & 0xFFFFFFFF
        state ^= state >> 17
        state ^= state << 5 & 0xFFFFFFFF
        yield state / 2**32
