"""`slotwise sweep`; what it computes is tested beside the sweep itself."""

from __future__ import annotations

import json
import sys
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING

import polars as pl
import pytest

if TYPE_CHECKING:
    from tests.cli.conftest import Cli, CliProcess

GRID = """\
version: 1
name: small
traffic:
  synthetic:
    requests: 80
    arrivals: {poisson: {rate: 2}}
    output_tokens: {uniform: [10, 400]}
server: {cost: {ms_per_token: 5}}
sweep: {slots: [4, 2], load: [1, 0.5], replications: 3}
"""


@pytest.fixture
def grid_file(tmp_path: Path) -> Path:
    """A workload file whose server tells no slots: the grid has its own."""
    path = tmp_path / "grid.yaml"
    path.write_text(GRID, encoding="utf-8")
    return path


def test_a_grid_becomes_a_table(cli: Cli, grid_file: Path, tmp_path: Path) -> None:
    done = cli("sweep", grid_file, "--output-dir", tmp_path / "out")
    assert done.code == 0
    assert "mean latency" in done.out
    assert "static" in done.out
    assert "limits" in done.out
    said = " ".join(done.out.split())
    assert said.count("middle 95 % of 3 replications") == 2
    assert "up to" in said
    assert "no end" in said  # lengths from 10 to 400 gain capacity
    assert " any " in said  # a full batch waits the longer the fewer requests come
    assert "18 points (12 replays, 6 searches) under 2 policies: static" in done.err
    assert "engine local" in done.err
    frame = pl.read_parquet(tmp_path / "out" / "sweep.parquet")
    assert frame.height == 2 * 2 * 3 * 2
    assert frame["slots"].unique().sort().to_list() == [2, 4]
    assert pl.read_parquet(tmp_path / "out" / "limits.parquet").height == 2 * 3 * 2
    written = {path.name for path in (tmp_path / "out").iterdir()}
    assert written == {
        "sweep.parquet", "limits.parquet", "sweep.json", "sweep.html", "sweep.md", "pictures",
        "sweep.partial.sqlite",
    }  # fmt: skip


def test_json_alone_goes_to_stdout(cli: Cli, grid_file: Path, tmp_path: Path) -> None:
    done = cli("sweep", grid_file, "--output-dir", tmp_path / "out", "--json", "--quiet")
    assert (done.code, done.err) == (0, "")
    said = json.loads(done.out)
    assert said["schema"] == "slotwise/sweep/v1"
    assert (said["engine"], said["points"], said["baseline"]) == ("local", 18, "static")
    assert [(r["slots"], r["load"], r["policy"]) for r in said["rows"]] == [
        (slots, load, policy)
        for slots in (2, 4)
        for load in (0.5, 1.0)
        for policy in ("static", "continuous")
    ]
    frame = pl.read_parquet(tmp_path / "out" / "sweep.parquet")
    row = said["rows"][-1]
    same = frame.filter(
        (pl.col("slots") == row["slots"])
        & (pl.col("load") == row["load"])
        & (pl.col("policy") == row["policy"])
    )
    assert row["latency_mean_s"]["estimate"] == pytest.approx(same["latency_mean_s"].mean())
    assert [(own["slots"], own["policy"]) for own in said["limits"]] == [
        (slots, policy) for slots in (2, 4) for policy in ("static", "continuous")
    ]
    assert json.loads((tmp_path / "out" / "sweep.json").read_bytes()) == said


def test_a_step_cost_with_memory_and_bins(cli: Cli, grid_file: Path, tmp_path: Path) -> None:
    grid_file.write_text(
        GRID.replace("{ms_per_token: 5}", "{preset: llama-3.1-8b-a100}, memory: {kv_tokens: 900}")
        + "policies: [static, binned: {bins: 2, prediction_error: 0.5}, continuous]\n"
    )
    done = cli("sweep", grid_file, "--output-dir", tmp_path / "out")
    assert done.code == 0, done.err
    assert "preset llama-3.1-8b-a100, derived; " in done.out
    assert "memory: 900 tokens a server" in done.out
    said = json.loads(cli("sweep", grid_file, "--output-dir", tmp_path / "again", "--json").out)
    assert said["costs"]["llama-3.1-8b-a100"]["kind"] == "preset"
    assert said["memory"]["kv_tokens"] == 900
    gains = {row["policy"]: row["gain"]["estimate"] for row in said["rows"] if row["gain"]}
    assert gains["static"] == 1
    assert gains["continuous"] > 1
    one, again = ((tmp_path / n / "sweep.parquet").read_bytes() for n in ("out", "again"))
    assert one == again


def test_the_seed_decides(cli: Cli, grid_file: Path, tmp_path: Path) -> None:
    for name, seed in (("a", 1), ("b", 1), ("c", 2)):
        cli("sweep", grid_file, "--output-dir", tmp_path / name, "--seed", seed)
    one, again, other = ((tmp_path / n / "sweep.parquet").read_bytes() for n in "abc")
    assert one == again != other


def test_a_dry_run_runs_nothing(cli: Cli, grid_file: Path, tmp_path: Path) -> None:
    done = cli("sweep", grid_file, "--output-dir", tmp_path / "out", "--dry-run")
    assert done.code == 0
    assert done.out.splitlines() == [
        "5 ms per token, 2 slots, load 0.5",
        "5 ms per token, 2 slots, load 1",
        "5 ms per token, 4 slots, load 0.5",
        "5 ms per token, 4 slots, load 1",
        "5 ms per token, 2 slots, limits",
        "5 ms per token, 4 slots, limits",
    ]
    assert "18 points" in done.err
    assert not (tmp_path / "out").exists()
    said = json.loads(cli("sweep", grid_file, "--dry-run", "--json", "--quiet").out)
    assert (said["dry_run"], said["engine"], said["points"]) == (True, "local", 18)
    assert len(said["settings"]) == 6
    assert said["seconds"] > 0
    assert said["memory_bytes"] > 0


def test_a_large_grid_is_not_listed_to_its_end(cli: Cli, grid_file: Path) -> None:
    grid_file.write_text(GRID.replace("load: [1, 0.5]", f"load: {list(range(1, 100))}"))
    done = cli("sweep", grid_file, "--dry-run")
    assert done.out.splitlines()[-1] == "... and 160 more"
    assert len(done.out.splitlines()) == 41


def test_what_is_finished_is_not_computed_again(cli: Cli, grid_file: Path, tmp_path: Path) -> None:
    """A wider grid computes what is new, and says so."""
    first = cli("sweep", grid_file, "--output-dir", tmp_path / "out")
    assert "earlier run" not in first.err
    one = (tmp_path / "out" / "sweep.parquet").read_bytes()
    again = cli("sweep", grid_file, "--output-dir", tmp_path / "out")
    assert "18 of 18 points were finished by an earlier run" in again.err
    assert (tmp_path / "out" / "sweep.parquet").read_bytes() == one
    grid_file.write_text(GRID.replace("load: [1, 0.5]", "load: [1, 0.5, 2]"))
    wider = cli("sweep", grid_file, "--output-dir", tmp_path / "out")
    assert "18 of 24 points were finished by an earlier run" in wider.err
    grid_file.write_text(GRID.replace("[10, 400]", "[10, 401]"))
    other = cli("sweep", grid_file, "--output-dir", tmp_path / "out")
    assert "earlier run" not in other.err


def test_users_offline_and_balancers(cli: Cli, grid_file: Path, tmp_path: Path) -> None:
    grid_file.write_text(
        GRID.replace("traffic:\n", "traffic:\n  users: {count: 4, think_s: 1}\n").replace(
            "load: [1, 0.5]",
            "users: [2, 8], offline: true, replicas: [1, 2],"
            " balancer: [round_robin, least_busy], limits: false",
        )
    )
    done = cli("sweep", grid_file, "--output-dir", tmp_path / "out", "--json", "--quiet")
    assert done.code == 0, done.err
    rows = json.loads(done.out)["rows"]
    assert {row["arrivals"] for row in rows} == {"closed", "offline"}
    assert {row["users"] for row in rows} == {2, 8, None}
    assert {(row["replicas"], row["balancer"]) for row in rows} == {
        (1, "round_robin"), (2, "round_robin"), (2, "least_busy"),
    }  # fmt: skip
    assert not (tmp_path / "out" / "limits.parquet").exists()


def test_a_point_that_fails_is_named_and_the_others_are_written(
    cli: Cli, grid_file: Path, tmp_path: Path
) -> None:
    """A variation that 80 requests cannot have."""
    grid_file.write_text(GRID.replace("load: [1, 0.5]", "load: [1], length_cv: [0.5, 15]"))
    done = cli("sweep", grid_file, "--output-dir", tmp_path / "out", "--quiet")
    assert done.code == 1
    assert "12 of 30 points failed" in done.err
    assert "length CV 15" in done.err
    assert done.err.count("\n") == 1
    said = json.loads((tmp_path / "out" / "sweep.json").read_bytes())
    assert len(said["failures"]) == 12
    assert {own["length_cv"] for own in said["failures"]} == {15.0}
    assert {row["length_cv"] for row in said["rows"]} == {0.5}


def test_lengths_that_are_all_equal_are_not_respread(cli: Cli, grid_file: Path) -> None:
    grid_file.write_text(
        GRID.replace("{uniform: [10, 400]}", "{constant: 100}").replace(
            "load: [1, 0.5]", "length_cv: [0, 1]"
        )
    )
    done = cli("sweep", grid_file, "--quiet", "--dry-run")
    assert done.code == 3
    assert "sweep.length_cv cannot respread output lengths that are all equal" in done.err


def test_a_missing_extra_is_exit_code_6(
    cli: Cli, grid_file: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "ray", None)
    done = cli("sweep", grid_file, "--output-dir", tmp_path / "out", "--engine", "ray", "--quiet")
    assert done.code == 6
    assert "uv sync --extra ray" in done.err
    assert f'pip install "slotwise-{version("slotwise")}-py3-none-any.whl[ray]"' in done.err
    assert done.err.count("\n") == 1
    assert not (tmp_path / "out").exists()


@pytest.mark.ray
def test_ray_writes_the_same_bytes_and_keeps_quiet(
    cli_process: CliProcess, grid_file: Path, tmp_path: Path
) -> None:
    for engine in ("local", "ray"):
        done = cli_process(
            "sweep", grid_file, "--output-dir", tmp_path / engine, "--engine", engine, "--json",
            "--quiet", "--workers", 2,
        )  # fmt: skip
        assert (done.returncode, done.stderr) == (0, b"")
        assert json.loads(done.stdout)["engine"] == engine
    local, on_ray = ((tmp_path / e / "sweep.parquet").read_bytes() for e in ("local", "ray"))
    assert local == on_ray


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (("ms_per_token: 5", "preset: some"), "is no preset"),
        (("{ms_per_token: 5}", "{step: {base_ms: 5}}, memory: {kv_tokens: 32}"), "never run"),
        (("slots: [4, 2]", "slots: [0]"), "sweep.slots"),
        (("{slots", "{slot"), "did you mean"),
    ],
)
def test_a_wrong_file_is_told_at_its_line(
    cli: Cli, grid_file: Path, change: tuple[str, str], said: str
) -> None:
    grid_file.write_text(GRID.replace(*change), encoding="utf-8")
    done = cli("sweep", grid_file, "--quiet")
    assert done.code == 3
    assert said.lower() in done.err.lower()
    assert f"{grid_file}:" in done.err


def test_figures_are_never_cut(cli: Cli, grid_file: Path, tmp_path: Path) -> None:
    """Nor is a column left out: what is wider than the console is printed wider."""
    grid_file.write_text(
        GRID.replace(
            "load: [1, 0.5]",
            "load: [0.05, 1], offline: true, replicas: [1, 2], length_cv: [0.35, 1.25],"
            " cost: [{ms_per_token: 5}, {preset: llama-3.1-8b-a100}]",
        ).replace("replications: 3", "replications: 1")
        + "policies: [static, dynamic, {binned: {bins: 2}}, continuous]\n"
    )
    out = cli("sweep", grid_file, "--output-dir", tmp_path / "out").out
    for whole in ("llama-3.1-8b-a100", "0.05", "1.25", "offline", "pays from", "requests/s"):
        assert whole in out
    said = json.loads((tmp_path / "out" / "sweep.json").read_bytes())
    offline = [row for row in said["rows"] if row["arrivals"] == "offline"]
    assert f"{offline[0]['makespan_s']['estimate']:.2f}+" in out


def test_heads_of_many_policies_are_whole_and_distinct(
    cli: Cli, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    path = tmp_path / "three.yaml"
    path.write_text(
        "version: 1\nname: three\ntraffic:\n  synthetic: {requests: 50, "
        "arrivals: {poisson: {rate: 2}}, output_tokens: {uniform: [10, 400]}}\n"
        "server: {slots: 4, cost: {ms_per_token: 5}}\n"
        "policies: [static, dynamic, {dynamic: {max_delay_ms: 100}}, "
        "{dynamic: {max_delay_ms: 1000}}, continuous]\n"
        "sweep: {slots: [4], load: [1], replications: 2}\n"
    )
    said = cli("sweep", path, "--output-dir", tmp_path / "out")
    heads = ["slots", "best", "gain", "static", "dyn", "dyn#2", "dyn#3", "cont"]
    assert heads in [line.split() for line in said.out.splitlines()]
    assert all(len(line.rstrip()) <= 80 for line in said.out.splitlines())
    row = next(line.split() for line in said.out.splitlines() if line.split()[:1] == ["4"])
    assert row[1] == "continuous"  # whose gain it is


def test_one_point_under_one_policy(cli: Cli, grid_file: Path) -> None:
    one = "sweep: {slots: [4], load: [1], replications: 1, limits: false}\npolicies: [continuous]\n"
    grid_file.write_text(GRID.partition("sweep:")[0] + one)
    done = cli("sweep", grid_file, "--dry-run")
    assert "1 point under 1 policy: continuous" in done.err
