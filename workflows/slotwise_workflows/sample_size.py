"""How many requests a figure needs before it is shown."""

from __future__ import annotations

# Fewest requests whose p95 and p99 have a two-sided 95 % interval: 1 - q^n >= 0.975.
P95_REQUESTS = 72
P99_REQUESTS = 368
