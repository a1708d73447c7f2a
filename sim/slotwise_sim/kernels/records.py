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

_HELD = ("held_until_s", np.float64)
_REFILLING = [
    ("preempted_s", np.float64),  # seconds
    ("generated", np.int32),  # tokens before the last preemption
    ("reserved", np.int64),  # memory held for life; 0 where memory is not reserved
]

BATCHED = np.dtype([*_REQUEST, _HELD])
"""A request that is served in a batch."""

REFILLING = np.dtype([*_REQUEST, *_REFILLING])
"""A request that is served as soon as a slot is free."""

COUPLED = np.dtype(
    [
        *_REQUEST,
        _HELD,
        *_REFILLING,
        ("think_s", np.float64),  # from the answer that lets it be sent to its arrival
        ("bin", np.int64),  # the line it joins at its server
        ("server", np.int64),  # written by the loop, as arrival_s is
    ]
)
"""A request whose arrival or whose server hangs on other requests; served either way."""
