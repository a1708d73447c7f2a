"""`slotwise probe` as a process; what it finds is tested beside the probe itself."""

from __future__ import annotations

import base64
import http.server
import json
import threading
from collections.abc import Callable, Iterator
from contextlib import ExitStack
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


KEY = "sk-Right-4711"
LISTED = {"data": [{"id": "tiny", "owned_by": KEY, KEY: KEY}]}
CHUNK = {"choices": [{"delta": {"content": KEY}, "finish_reason": None}]}
LAST = {"choices": [{"delta": {}, "finish_reason": KEY}], "usage": {"completion_tokens": KEY}}


def whole(body: object, status: str = "200 OK", *headers: str) -> bytes:
    content = json.dumps(body).encode()
    told = [f"HTTP/1.1 {status}", f"content-length: {len(content)}", f"x-key: {KEY}", *headers]
    return ("\r\n".join(told) + "\r\n\r\n").encode() + content


def stream(*events: object) -> bytes:
    head = f"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\nserver: {KEY}\r\n\r\n"
    return (head + "".join(f"data: {json.dumps(event)}\n\n" for event in events)).encode()


ERROR = {"error": {"message": f"what is {KEY}?", "param": KEY}}
# Answers to GET /models and to a request, of servers that give the key back wherever they can.
ECHOES = {
    "the list refuses it": (whole(ERROR, "401 Unauthorized"), b"", "HTTP 401"),
    "the list leads there": (
        whole({}, "307 Moved", f"location: http://{KEY}.example/"),
        b"",
        "redirects elsewhere",
    ),
    "several models": (
        whole({"data": [{"id": KEY}, {"id": "a"}, {"id": "b"}]}),
        b"",
        "serves 2 models: a, b",
    ),
    "the list is no HTTP": (KEY.encode() + b"\r\n\r\n", b"", "is no HTTP"),
    "a status of its own": (whole(LISTED), whole(ERROR, f"418 {KEY}"), "HTTP 418"),
    "refused": (whole(LISTED), whole(ERROR, "400 Bad Request"), "HTTP 400"),
    "too often": (
        whole(LISTED),
        whole(ERROR, "429 Too Many", f"retry-after: {KEY}"),
        "HTTP 429",
    ),
    "redirected": (whole(LISTED), whole({}, "302 Found", f"location: http://{KEY}/"), "HTTP 302"),
    "no HTTP": (whole(LISTED), KEY.encode() + b"\r\n\r\n", "is no HTTP"),
    "an unknown encoding": (
        whole(LISTED),
        whole({}, "200 OK", f"content-encoding: {KEY}"),
        "decompressed",
    ),
    "no JSON": (whole(LISTED), stream(CHUNK, KEY), "not that of an OpenAI"),
    "an error event": (whole(LISTED), stream(CHUNK, ERROR), "error in place of tokens"),
    "cut": (whole(LISTED), stream(CHUNK), "ends in the middle"),
    "no token": (whole(LISTED), stream(LAST), "without a single token"),
    "a model named after it": (whole({"data": [{"id": KEY}]}), stream(CHUNK, LAST), ""),
    "an answer that is well": (whole(LISTED), stream(CHUNK, LAST), ""),
}


@pytest.fixture
def echo() -> Iterator[Callable[[str], str]]:
    """The URL of a server of that kind, which listens on this machine."""
    with ExitStack() as stack:

        def start(kind: str) -> str:
            listed, answer, _said = ECHOES[kind]

            class Echo(http.server.BaseHTTPRequestHandler):
                def do_GET(self) -> None:
                    page = self.path.partition("?")[0]
                    self.wfile.write(listed if page == "/v1/models" else whole({}, "404 None"))

                def do_POST(self) -> None:
                    self.rfile.read(int(self.headers["content-length"]))
                    self.wfile.write(answer)

                def log_message(self, *_: object) -> None:
                    """Says nothing."""

            server = stack.enter_context(http.server.ThreadingHTTPServer(("127.0.0.1", 0), Echo))
            thread = threading.Thread(target=server.serve_forever, args=(0.05,))
            thread.start()
            stack.callback(thread.join)
            stack.callback(server.shutdown)
            return f"http://127.0.0.1:{server.server_port}/v1?token={KEY}"

        yield start


@pytest.mark.parametrize("kind", ECHOES)
def test_a_key_stands_in_nothing_that_is_written(
    cli: Cli,
    echo: Callable[[str], str],
    kind: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    caplog.set_level("DEBUG", "slotwise")
    monkeypatch.setenv("SLOTWISE_API_KEY", KEY)
    done = cli("--debug", "probe", echo(kind), "--yes", "--json", "--output-dir", tmp_path)
    said = ECHOES[kind][2]
    assert said in done.err
    assert (done.code, "Traceback" in done.err) == ((5, True) if said else (0, False))
    written = [done.out, done.err, caplog.text, *(f.read_text() for f in tmp_path.iterdir())]
    for text in written:
        for secret in (KEY, "Right", "4711", "right-", base64.b64encode(KEY.encode()).decode()):
            assert secret not in text


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
    assert b"could not be told" in done.stdout
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


def test_what_diagnose_has_no_option_for_is_probes(
    cli: Cli, echo: Callable[[str], str], log_file: Path, tmp_path: Path
) -> None:
    """It serves two models; `--model` is an option of `probe`, whose directory `diagnose` takes."""
    words = ["--probe", echo("several models"), "--yes", "--quiet", "--output-dir", tmp_path / "o"]
    done = cli("diagnose", log_file, *words)
    assert done.code == 5
    assert "--model, which `probe` takes: slotwise probe URL --output-dir DIR" in done.err
    assert "--probe DIR" in done.err


def test_a_hint_that_holds_here_stays_as_it_is(cli: Cli, log_file: Path, tmp_path: Path) -> None:
    words = ["--probe", "http://127.0.0.1:9", "--yes", "--quiet", "--output-dir", tmp_path / "o"]
    assert "--probe DIR" not in cli("diagnose", log_file, *words).err


def test_who_is_not_there_leaves_no_directory(cli: Cli, tmp_path: Path) -> None:
    log = tmp_path / "log.csv"
    log.write_text("output_tokens\n" + "5\n7\n" * 30)
    here = tmp_path / "here"
    for words in (
        ("probe", "http://127.0.0.1:9"),
        ("diagnose", log, "--probe", "http://127.0.0.1:9"),
    ):
        assert cli(*words, "--yes", "--output-dir", here / "deeper").code == 5
        assert not here.exists()


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
        (("http://h", "--yes", "--max-seconds", "inf"), 2, "no finite number"),
        (("http://h", "--yes", "--model", "tiny-\udcff"), 2, "no UTF-8"),
        (("http://h", "--yes", "--api-key-env", "NOT_SET_ANYWHERE"), 2, "NOT_SET_ANYWHERE"),
    ],
)
def test_faults_are_one_line(cli: Cli, words: tuple[object, ...], code: int, said: str) -> None:
    done = cli("probe", *words, "--quiet")
    assert (done.code, done.out) == (code, "")
    assert said in done.err
    assert done.err.count("\n") == 1
    assert "pw" not in done.err
