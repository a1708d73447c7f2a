"""Opens bytes as a log: what most tests of containers do."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from slotwise_workflows.traffic.containers import Container, Row, open_container


@pytest.fixture
def opened(tmp_path: Path) -> Callable[..., tuple[Container, list[Row]]]:
    """Writes bytes (or text, as UTF-8) to a file of an unhelpful name and reads it whole."""

    def open_bytes(data: bytes | str, **options: Any) -> tuple[Container, list[Row]]:
        path = tmp_path / "some.log"
        path.write_bytes(data.encode() if isinstance(data, str) else data)
        container, rows = open_container(path, name="some.log", **options)
        return container, list(rows)

    return open_bytes
