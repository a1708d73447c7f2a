"""What goes wrong in logs, each as a small one with its right answer."""

from __future__ import annotations

import gzip
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from slotwise_workflows.errors import InputError
from slotwise_workflows.traffic import ReadOptions, Traffic, read_traffic

DAY = 1_788_220_800  # 2026-09-01T00:00:00Z
SECOND = 10**9


@dataclass(frozen=True)
class Fault:
    name: str
    text: str
    outputs: list[int]
    excluded: dict[str, int] = field(default_factory=dict)
    flags: set[str] = field(default_factory=set)
    arrivals: list[float] | None = None  # seconds after DAY, of every kept row
    file: str = "log.csv"


FAULTS = (
    Fault(
        "chunks of streamed answers are one request each",
        '{"id":"a","object":"chat.completion.chunk","created":1788220800,"choices":[{"delta":{}}],"usage":null}\n'
        '{"id":"a","object":"chat.completion.chunk","created":1788220800,"choices":[{"delta":{}}],"usage":null}\n'
        '{"id":"a","object":"chat.completion.chunk","created":1788220800,"choices":[],"usage":{"prompt_tokens":3,"completion_tokens":133}}\n'
        '{"id":"b","object":"chat.completion.chunk","created":1788220805,"choices":[{"delta":{}}]}\n'
        '{"id":"b","object":"chat.completion.chunk","created":1788220805,"choices":[],"usage":{"prompt_tokens":3,"completion_tokens":61}}\n',
        [133, 61],
        {"chunk_row": 3},
        arrivals=[0, 5],
    ),
    Fault(
        "snapshots of a growing answer: the largest counts",
        '{"timestamp":"2026-09-01T00:00:01Z","requestId":"q1","message":{"id":"m1","usage":{"input_tokens":5,"output_tokens":2}}}\n'
        '{"timestamp":"2026-09-01T00:00:02Z","requestId":"q1","message":{"id":"m1","usage":{"input_tokens":5,"output_tokens":9}}}\n'
        '{"timestamp":"2026-09-01T00:00:03Z","requestId":"q1","message":{"id":"m1","usage":{"input_tokens":5,"output_tokens":159}}}\n'
        '{"timestamp":"2026-09-01T00:00:04Z","requestId":"q2","message":{"id":"m2","usage":{"input_tokens":5,"output_tokens":41}}}\n',
        [159, 41],
        {"duplicate": 2},
        {"timestamps_are_write_time_not_arrival"},
    ),
    Fault(
        "the count of several choices is no length",
        '{"ts":1788220800,"n":1,"usage":{"prompt_tokens":3,"completion_tokens":100}}\n'
        '{"ts":1788220801,"n":4,"usage":{"prompt_tokens":3,"completion_tokens":400}}\n'
        '{"ts":1788220802,"n":1,"usage":{"prompt_tokens":3,"completion_tokens":120}}\n',
        [100, 120],
        {"multi_choice": 1},
        arrivals=[0, 2],
    ),
    Fault(
        "an end without a duration gives no arrival",
        "completed_at,prompt_tokens,completion_tokens\n"
        "2026-09-01T00:00:30Z,10,900\n2026-09-01T00:00:31Z,10,20\n",
        [900, 20],
        flags={"no_arrival"},
    ),
    Fault(
        "an end with a duration does, in whatever order the ends are",
        "finished_at,latency_s,prompt_tokens,completion_tokens\n"
        "2026-09-01T00:00:30Z,29.5,10,900\n2026-09-01T00:00:31Z,0.5,10,20\n"
        "2026-09-01T00:00:33Z,31.0,10,950\n",
        [900, 20, 950],
        flags={"arrival_derived_from_completion"},
        arrivals=[0.5, 30.5, 2],
    ),
    Fault(
        "fractions of any length, T or space, Z or offset",
        "TIMESTAMP,ContextTokens,GeneratedTokens\n2026-09-01 00:00:00+00:00,1,3\n"
        "2026-09-01T00:00:00.5Z,1,5\n2026-09-01 00:00:01.000001,1,38\n"
        "2026-09-01 00:00:02.0000001+00:00,1,7\n",
        [3, 5, 38, 7],
        arrivals=[0, 0.5, 1.000001, 2.0000001],
    ),
    Fault(
        "semicolons and decimal commas: there a dot groups thousands",
        "timestamp;latency_s;prompt_tokens;completion_tokens\n"
        "2026-09-01T00:00:00Z;1,5;1.024;256\n2026-09-01T00:00:01Z;12,25;90;1.500\n"
        "2026-09-01T00:00:02Z;0,75;80;64\n",
        [256, 1500, 64],
        arrivals=[0, 1, 2],
    ),
    Fault(
        "a spreadsheet rounds ids, drops seconds and writes dates its own way",
        "request_id,time,prompt_tokens,completion_tokens\n"
        "1.78822E+18,9/1/2026 0:00,1,100\n1.78822E+18,9/1/2026 0:00,1,130\n"
        "1.78822E+18,9/1/2026 0:01,1,170\n",
        [100, 130, 170],
        flags={"ids_unusable", "time_resolution:60s", "ambiguous_date_order"},
    ),
    Fault(
        "a day above twelve settles the order of slash dates",
        "time,prompt_tokens,completion_tokens\n"
        "08/31/2026 23:59:59,1,100\n9/1/2026 12:00:01 AM,1,130\n",
        [100, 130],
        flags={"naive_timestamps_assumed_utc"},
        arrivals=[-1, 1],
    ),
    Fault(
        "equal rows without an id are different requests",
        "Timestamp,Model,Request tokens,Response tokens,Total tokens,Log Type\n"
        "5,ChatGPT,10,50,60,API log\n5,ChatGPT,10,50,60,API log\n"
        "6,ChatGPT,10,70,80,API log\n11,ChatGPT,10,50,60,API log\n",
        [50, 50, 70, 50],
        flags={"time_resolution:1s"},
        arrivals=[5 - DAY, 5 - DAY, 6 - DAY, 11 - DAY],
    ),
    Fault(
        "objects back to back",
        '{"ts":1788220800,"completion_tokens":10}{"ts":1788220801,"completion_tokens":20}',
        [10, 20],
        arrivals=[0, 1],
    ),
    Fault(
        "a comma before the end of an array",
        '[{"ts":1788220800,"completion_tokens":10},\n{"ts":1788220801,"completion_tokens":20},\n]',
        [10, 20],
        flags={"repaired_json"},
        arrivals=[0, 1],
    ),
    Fault(
        "chunks are not tokens",
        '{"ts":1788220800,"chunks":57,"usage":{"completion_tokens":100}}\n'
        '{"ts":1788220801,"chunks":57,"usage":{"completion_tokens":140}}\n'
        '{"ts":1788220802,"chunks":57}\n',
        [100, 140],
        {"no_output": 1},
        arrivals=[0, 1],
    ),
    Fault(
        "the cap is not the length",
        '{"ts":1788220800,"max_tokens":4096,"completion_tokens":210}\n'
        '{"ts":1788220801,"max_tokens":4096}\n'
        '{"ts":1788220802,"max_tokens":4096,"completion_tokens":33}\n',
        [210, 33],
        {"no_output": 1},
        arrivals=[0, 2],
    ),
    Fault(
        "naive times that rise, but for one step back of up to an hour: a clock was put back",
        "time,completion_tokens\n2026-10-25 02:59:50,100\n2026-10-25 02:00:10,110\n"
        "2026-10-25 02:30:00,120\n",
        [100, 110, 120],
        flags={"naive_timestamps_assumed_utc", "backward_jump"},
    ),
    Fault(
        "naive times that step back more than once are in no order",
        "time,completion_tokens\n2026-09-01 00:00:05,1\n2026-09-01 00:00:02,2\n"
        "2026-09-01 00:00:09,3\n2026-09-01 00:00:07,4\n",
        [1, 2, 3, 4],
        flags={"naive_timestamps_assumed_utc", "reordered"},
        arrivals=[5, 2, 9, 7],
    ),
    Fault(
        "gzip under another name",
        "gzip:timestamp,completion_tokens\n2026-09-01T00:00:00Z,10\n2026-09-01T00:00:01Z,20\n",
        [10, 20],
        arrivals=[0, 1],
    ),
    Fault(
        "a time that is none makes the row unparsable",
        "timestamp,completion_tokens\n2026-09-01T00:00:00Z,10\nsoon,20\n,25\n"
        "2026-09-01T00:00:01Z,30\n",
        [10, 30],
        {"unparsable": 2},
        arrivals=[0, 1],
    ),
    Fault(
        "times of a few rows only are no arrivals",
        "timestamp,completion_tokens\n2026-09-01T00:00:00Z,10\n,20\n,30\n",
        [10, 20, 30],
        flags={"no_arrival"},
    ),
    Fault(
        "an error that shows a first token is of unknown length, one that shows none failed",
        "ts,completion_tokens,ttft_ms,status\n1788220800,10,5,ok\n1788220801,,5,error\n"
        "1788220802,,,error\n1788220803,0,5,error\n1788220804,12,,500\n",
        [10],
        {"no_output": 1, "failed": 3},
        {"too_few_requests"},
        [0],
    ),
    Fault(
        "a request that was aborted with tokens out is kept",
        "ts,completion_tokens,status,finish_reason\n1788220800,10,200,stop\n"
        "1788220801,7,499,\n1788220802,0,499,\n1788220803,9,200,abort\n",
        [10, 7, 9],
        {"failed": 1},
        {"aborted:2/3"},
        [0, 1, 3],
    ),
    Fault(
        "the first reason counts",
        "ts,call_type,status,cache_hit,n,rid,completion_tokens\n"
        "1788220800,acompletion,200,false,1,a,10\n"
        "1788220801,acompletion,200,false,1,a,10\n"
        "1788220802,acompletion,200,false,2,a,10\n"
        "1788220803,acompletion,200,true,2,a,0\n"
        "1788220804,acompletion,500,true,2,a,0\n"
        "1788220805,aembedding,500,true,2,a,0\n"
        "1788220806,aembedding,500,true,2,a,1.5\n",
        [10],
        {
            "duplicate": 1,
            "multi_choice": 1,
            "cache_hit": 1,
            "failed": 1,
            "not_generation": 1,
            "unparsable": 1,
        },
        {"too_few_requests"},
        [0],
    ),
    Fault(
        "reasoning that the total shows to stand apart is added once",
        '{"ts":1788220800,"usage":{"prompt_tokens":10,"completion_tokens":50,"reasoning_tokens":30,"total_tokens":90}}\n'
        '{"ts":1788220801,"usage":{"prompt_tokens":10,"completion_tokens":50,"reasoning_tokens":30,"total_tokens":60}}\n',
        [80, 50],
        arrivals=[0, 1],
    ),
    Fault(
        "probes are known by path, id or agent, never by size",
        '{"ts":1788220800,"path":"/health","completion_tokens":1}\n'
        '{"ts":1788220801,"user_agent":"kube-probe/1.30","completion_tokens":1}\n'
        '{"ts":1788220802,"rid":"HEALTH_CHECK_1","completion_tokens":1}\n'
        '{"ts":1788220803,"rid":"x","path":"/v1/chat/completions","completion_tokens":1}\n'
        '{"ts":1788220804,"rid":"y","path":"/v1/chat/completions","prompt_tokens":0,"completion_tokens":9}\n',
        [1, 9],
        {"not_generation": 3},
        arrivals=[3, 4],
    ),
    Fault(
        "flattened columns keep their paths",
        "created_at,usage.prompt_tokens,usage.completion_tokens\n1788220800,5,10\n1788220801,5,20\n",
        [10, 20],
        arrivals=[0, 1],
    ),
    Fault(
        "a log shipper wraps records as text",
        '{"log":"{\\"ts\\": 1788220800, \\"completion_tokens\\": 10}\\n","stream":"stdout"}\n'
        '{"log":"starting\\n","stream":"stdout"}\n'
        '{"log":"{\\"ts\\": 1788220801, \\"completion_tokens\\": 20}\\n","stream":"stdout"}\n',
        [10, 20],
        {"not_generation": 1},
        arrivals=[0, 1],
    ),
    Fault(
        "a column called n that numbers the rows is no number of choices",
        "n,ts,completion_tokens\n1,1788220800,1\n2,1788220801,2\n3,1788220802,3\n4,1788220803,4\n",
        [1, 2, 3, 4],
        arrivals=[0, 1, 2, 3],
    ),
)


def read(fault_text: str, folder: Path, options: ReadOptions | None = None) -> Traffic:
    path = folder / "log.csv"
    zipped = fault_text.startswith("gzip:")
    data = fault_text.removeprefix("gzip:").encode()
    path.write_bytes(gzip.compress(data) if zipped else data)
    return read_traffic([str(path)], options or ReadOptions())


@pytest.mark.parametrize("fault", FAULTS, ids=lambda fault: fault.name)
def test_fault(fault: Fault, tmp_path: Path) -> None:
    traffic = read(fault.text, tmp_path)
    assert traffic.rows == len(traffic) + sum(traffic.excluded.values())
    assert traffic.table["gen_ai.usage.output_tokens"].to_list() == fault.outputs
    assert traffic.excluded == fault.excluded
    assert set(traffic.flags) == fault.flags
    starts = traffic.table["start_time"].to_list()
    if fault.arrivals is None:
        assert traffic.clock is None
        assert starts == [None] * len(traffic)
    else:
        assert [round((ns - DAY * SECOND) / 100) for ns in starts] == [
            round(s * 10**7) for s in fault.arrivals
        ]


REFUSALS = (
    ("timestamp,completion_tokens\n1788220800,5\n1788220801000,6\n", "unit of timestamp changes"),
    ("timestamp,completion_tokens\n1788220800,5\n2026-09-01T00:00:00Z,6\n", "dates and numbers"),
    ("timestamp,completion_tokens\n1788220800,1.500\n", "not an integer (1.500)"),
    ("timestamp,total_tokens\n1788220800,300\n", "total_tokens cannot be split"),
    ("date,requests,output_tokens\n2026-09-01,1200,240000\n", "daily totals"),
    ("bucket,le,count\n1,10,5\n2,20,6\n", "summary"),
    ('{"ts":1788220800,"prompt":"x","response":"y"}\n', "no token counts"),
    ('{"a":1,"b":2}\n{"a":1,"b":3}\n', "no output-token column"),
    ("timestamp,completion_tokens\n1788220800,0\n1788220801,\n", "0 requests after exclusions"),
    ("timestamp,completion_tokens\n", "0 requests after exclusions"),
    ("[]", "0 requests"),
)


@pytest.mark.parametrize(("text", "told"), REFUSALS, ids=[told for _, told in REFUSALS])
def test_refusal(text: str, told: str, tmp_path: Path) -> None:
    with pytest.raises(InputError) as caught:
        read(text, tmp_path)
    message = str(caught.value)
    assert told in message
    assert "log.csv" in message
    assert "\n" not in message


def test_repeated_hour_is_told_apart_by_order(tmp_path: Path) -> None:
    text = (
        "time,completion_tokens\n2026-10-25 02:59:50,1\n2026-10-25 02:00:10,2\n"
        "2026-10-25 02:30:00,3\n2026-10-25 03:00:00,4\n"
    )
    traffic = read(text, tmp_path, ReadOptions(timezone="Europe/Berlin"))
    starts = traffic.table["start_time"].to_list()
    assert starts[-1] - starts[0] == 3610 * SECOND
    assert starts[1] - starts[0] == 20 * SECOND
    assert traffic.flags == ()


def test_missing_counts_of_streamed_calls_bias_the_rest(tmp_path: Path) -> None:
    text = "".join(
        f'{{"ts":{DAY + i},"stream":{s},"usage":{u}}}\n'
        for i, (s, u) in enumerate(
            [
                ("false", '{"completion_tokens":50}'),
                ("true", "null"),
                ("true", '{"completion_tokens":null}'),
                ("false", '{"completion_tokens":70}'),
                ("true", "{}"),
            ]
        )
    )
    traffic = read(text, tmp_path)
    assert traffic.excluded == {"no_output": 3}
    assert traffic.flags == ("biased_missing:stream",)


def test_key_given_twice_is_no_value(tmp_path: Path) -> None:
    text = (
        '{"ts":1788220800,"completion_tokens":100,"ttft_ms":255.9,"ttft_ms":4.9}\n'
        '{"ts":1788220801,"completion_tokens":120,"completion_tokens":12}\n'
        '{"ts":1788220802,"completion_tokens":90,"ttft_ms":5}\n'
    )
    traffic = read(text, tmp_path)
    assert traffic.table["gen_ai.usage.output_tokens"].to_list() == [100, 90]
    assert traffic.table["gen_ai.response.time_to_first_chunk"].to_list() == [None, 0.005]
    assert traffic.excluded == {"unparsable": 1}
    assert traffic.flags == ("duplicate_keys",)
    assert "log.csv:2" in traffic.notes[0]


def test_counter_that_starts_again_is_no_duplicate(tmp_path: Path) -> None:
    text = (
        "id,ts,completion_tokens\n7,1788220800,88\n8,1788220801,10\n"
        "7,1788220900,30\n7,1788220900,30\n"
    )
    traffic = read(text, tmp_path)
    assert traffic.table["gen_ai.usage.output_tokens"].to_list() == [88, 10, 30]
    assert traffic.excluded == {"duplicate": 1}


def test_first_token_of_a_call_that_was_not_streamed_says_nothing(tmp_path: Path) -> None:
    text = (
        "ts,stream,latency_ms,ttft_ms,completion_tokens\n"
        "1788220800,true,2000,250,100\n"  # streamed
        "1788220801,false,2000,300,120\n"  # said not to be
        "1788220802,,2000,2000,80\n"  # several tokens, the first with the last
        "1788220803,,2000,2000,1\n"  # one token: its first is its last
        "1788220804,,2000,0,80\n"  # not measured
    )
    traffic = read(text, tmp_path)
    assert traffic.table["gen_ai.response.time_to_first_chunk"].to_list() == [
        *(0.25, None, None, 2.0, None)
    ]


def test_first_token_that_comes_with_the_end_was_not_streamed(tmp_path: Path) -> None:
    text = (
        "startTime,endTime,completionStartTime,stream,completion_tokens\n"
        "2026-09-01T00:00:00Z,2026-09-01T00:00:02Z,2026-09-01T00:00:02Z,true,20\n"
        "2026-09-01T00:00:01Z,2026-09-01T00:00:02Z,2026-09-01T00:00:01.5Z,true,20\n"
    )
    traffic = read(text, tmp_path)
    assert traffic.table["gen_ai.response.time_to_first_chunk"].to_list() == [None, 0.5]
    assert traffic.table["e2e_latency"].to_list() == [2.0, 1.0]


def test_few_missing_counts_are_no_bias(tmp_path: Path) -> None:
    rows = [f"{DAY + i},{'true' if i % 2 else 'false'},{10 + i}" for i in range(40)]
    rows += [f"{DAY + 40 + i},true," for i in range(3)]
    traffic = read("ts,stream,completion_tokens\n" + "\n".join(rows) + "\n", tmp_path)
    assert traffic.excluded == {"no_output": 3}
    assert traffic.flags == ()


def test_model_whose_counts_are_missing_biases_the_rest(tmp_path: Path) -> None:
    rows = [f"{DAY + i},a,{10 + i}" for i in range(4)] + [f"{DAY + 4 + i},b," for i in range(3)]
    traffic = read("ts,model,completion_tokens\n" + "\n".join(rows) + "\n", tmp_path)
    assert traffic.flags == ("biased_missing:model",)
