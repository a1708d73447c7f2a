"""A diagnosis never touches the network."""

from __future__ import annotations

import socket
from pathlib import Path
from typing import Any, NoReturn

import numpy as np
import pytest
from typer.testing import CliRunner

from slotwise_cli.app import app


@pytest.fixture
def log(tmp_path: Path) -> Path:
    rng = np.random.default_rng(4)
    arrival = 1_788_220_800 + np.cumsum(rng.exponential(0.5, 400))
    path = tmp_path / "log.csv"
    path.write_text(
        "timestamp,model,prompt_tokens,completion_tokens\n"
        + "".join(
            f"{at:.3f},{'ab'[k % 2]},{rng.integers(9, 999)},{rng.integers(9, 999)}\n"
            for k, at in enumerate(arrival)
        )
    )
    return path


def diagnosed(log: Path, directory: Path) -> dict[str, bytes]:
    told = CliRunner().invoke(
        app, ["diagnose", str(log), "--slots", "8", "--output-dir", str(directory), "--seed", "3"]
    )
    assert told.exit_code == 0, told.output
    return {
        str(path.relative_to(directory)): path.read_bytes()
        for path in directory.rglob("*")
        if path.is_file()
    }


@pytest.mark.usefixtures("charts_drawn_anew")
def test_a_diagnosis_opens_no_connection(
    log: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: Any, **__: Any) -> NoReturn:
        raise AssertionError("a diagnosis asked for a socket")

    monkeypatch.setattr(socket, "socket", refuse)
    monkeypatch.setattr(socket, "create_connection", refuse)
    monkeypatch.setattr(socket, "getaddrinfo", refuse)
    assert diagnosed(log, tmp_path / "offline")
