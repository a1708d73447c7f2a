"""What the loops are handed: the requests, as records.

A loop that is handed ten columns counts references to ten arrays at every call; one array of
records costs one, and a request's numbers lie side by side in memory. Nor do loops take classes of
this package: Numba's cache names them, and could not be read again once a class has moved.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

Records = NDArray[np.void]

_REQUEST = [
    ("arrival_s", np.float64),
    ("prompt", np.int32),  # tokens
    ("output", np.int32),
    ("cached", np.int32),  # of the prompt, needing no prefill
    # What the loops write; see `Outcome`:
    ("start_s", np.float64),
    ("first_token_s", np.float64),
    ("own_end_s", np.float64),
]

BATCHED = np.dtype([*_REQUEST, ("held_until_s", np.float64)])
"""A request that is served in a batch."""

REFILLING = np.dtype(
    [
        *_REQUEST,
        ("preempted_s", np.float64),  # seconds
        ("generated", np.int32),  # tokens before the last preemption
        ("reserved", np.int64),  # memory held for life; 0 where memory is not reserved
    ]
)
"""A request that is served as soon as a slot is free."""
