"""`slotwise probe` as a process; what it finds is tested beside the probe itself."""

from __future__ import annotations

import http.server
import json
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from tests.cli.conftest import Cli, CliProcess


class OneModel(http.server.BaseHTTPRequestHandler):
    """Answers at once, in one piece, with as many tokens as asked for; wants a key."""

    def do_GET(self) -> None:
        self.answer(200, {"data": [{"id": "tiny"}]})

    def do_POST(self) -> None:
        body = json.loads(self.rfile.read(int(self.headers["content-length"])))
        if self.headers["authorization"] != "Bearer sk-right":
            said = f"no access with {self.headers['authorization']}"
            self.answer(401, {"error": {"message": said}})
            return
        usage = {"prompt_tokens": 9, "completion_tokens": body["max_tokens"]}
        choice = {"message": {"content": "one"}, "finish_reason": "length"}
        self.answer(200, {"choices": [choice], "usage": usage})

    def answer(self, status: int, body: object) -> None:
        content = json.dumps(body).encode()
        self.send_response(status)
        self.send_header("content-type", "application/json")
        self.send_header("content-length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)

    def log_message(self, *_: object) -> None:
        """Says nothing."""


@pytest.fixture
def endpoint() -> Iterator[str]:
    """The URL of an endpoint that is too fast for a verdict."""
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), OneModel) as server:
        thread = threading.Thread(target=server.serve_forever, args=(0.05,))
        thread.start()
        yield f"http://127.0.0.1:{server.server_port}"
        server.shutdown()
        thread.join()


WITH_KEY = {"SLOTWISE_API_KEY": "sk-right", "NO_PROXY": "127.0.0.1"}


def test_json_alone_goes_to_stdout(cli_process: CliProcess, endpoint: str, tmp_path: Path) -> None:
    done = cli_process(
        "probe", endpoint, "--yes", "--json", "--trials", 1, "--output-dir", tmp_path,
        environment=WITH_KEY,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    said = json.loads(done.stdout)
    assert said["schema"] == "slotwise/probe/v1"
    assert said["batching"] == "undetermined"
    assert said["model"] == "tiny"
    assert json.loads((tmp_path / "probe.json").read_bytes()) == said
    rows = (tmp_path / "probe.jsonl").read_bytes().splitlines()
    assert len(rows) == said["requests_sent"]
    assert b"at most" in done.stderr
    everything = done.stdout + done.stderr + b"".join(f.read_bytes() for f in tmp_path.iterdir())
    assert b"sk-right" not in everything


def test_a_person_reads_sentences(cli_process: CliProcess, endpoint: str) -> None:
    done = cli_process("probe", endpoint, "--yes", "--quiet", environment=WITH_KEY)
    assert done.returncode == 0
    assert b"cannot be told" in done.stdout
    assert done.stderr == b""


def test_a_wrong_key_is_told_but_not_shown(cli_process: CliProcess, endpoint: str) -> None:
    for words in ((), ("--debug",)):
        done = cli_process(
            "probe", endpoint, "--yes", "--api-key-env", "MY_KEY", *words,
            environment={"MY_KEY": "sk-wrong-8080", "NO_PROXY": "127.0.0.1"},
        )  # fmt: skip
        assert done.returncode == 5
        assert done.stdout == b""
        assert b"HTTP 401" in done.stderr
        assert b"sk-wrong" not in done.stderr


def test_nothing_is_sent_unless_agreed(cli_process: CliProcess) -> None:
    for words in ((), ("--no-input",)):
        done = cli_process("probe", "http://127.0.0.1:9", *words, stdin=-3)  # DEVNULL
        assert done.returncode == 2
        assert b"nothing was sent" in done.stderr
        assert b"at most" in done.stderr


@pytest.mark.parametrize(
    ("words", "code", "said"),
    [
        (("http://127.0.0.1:9", "--yes"), 5, "cannot be reached"),
        (("https://user:pw@host", "--yes"), 2, "credentials"),
        (("ftp://host", "--yes"), 2, "URL"),
        (("http://h", "--yes", "--max-requests", 5), 2, "too few"),
        (("http://h", "--yes", "--api-key-env", "NOT_SET_ANYWHERE"), 2, "NOT_SET_ANYWHERE"),
    ],
)
def test_faults_are_one_line(cli: Cli, words: tuple[object, ...], code: int, said: str) -> None:
    done = cli("probe", *words, "--quiet")
    assert (done.code, done.out) == (code, "")
    assert said in done.err
    assert done.err.count("\n") == 1
    assert "pw" not in done.err
