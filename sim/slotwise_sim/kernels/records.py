"""What the loops are handed: the requests, as records.

A loop that is handed ten columns counts references to ten arrays at every call; one array of
records costs one, and a request's numbers lie side by side in memory. Nor do loops take classes of
this package: Numba's cache names them, and could not be read again once a class has moved.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

Records = NDArray[np.void]

REQUEST = np.dtype(
    [
        ("arrival_s", np.float64),
        ("prompt", np.int32),  # tokens, as all below
        ("output", np.int32),
        ("cached", np.int32),  # of the prompt, needing no prefill
        ("reserved", np.int32),  # memory held for life; 0 where memory is not reserved
        ("generated", np.int32),  # before the last preemption
        ("start_s", np.float64),  # written by the loops, as all below; see `Outcome`
        ("first_token_s", np.float64),
        ("own_end_s", np.float64),
        ("held_until_s", np.float64),
    ]
)
