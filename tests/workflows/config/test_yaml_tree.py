"""A configuration's YAML: values by YAML 1.2, a line for every node, nothing dangerous."""

import contextlib
import math

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from slotwise_workflows.config.yaml_tree import MAX_BYTES, MAX_DEPTH, parse_yaml
from slotwise_workflows.errors import ConfigError


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("1e-05", 1e-05),
        ("1e3", 1000.0),
        ("+1.5E+2", 150.0),
        (".5", 0.5),
        ("1.", 1.0),
        (".inf", math.inf),
        ("-.INF", -math.inf),
        ("010", 10),
        ("-7", -7),
        ("0o17", 15),
        ("0xFF", 255),
        ("true", True),
        ("False", False),
        ("yes", "yes"),
        ("no", "no"),
        ("on", "on"),
        ("off", "off"),
        ("null", None),
        ("~", None),
        ("", None),
        ("1_000", "1_000"),
        ("12:30", "12:30"),
        ("2026-01-02", "2026-01-02"),
        ("'1e3'", "1e3"),
        ('"true"', "true"),
        ("0b11", "0b11"),
        ("e3", "e3"),
        (".", "."),
    ],
)
def test_scalars_follow_the_core_schema_of_yaml_1_2(text: str, value: object) -> None:
    read = parse_yaml(f"key: {text}\n".encode(), name="w.yaml").value["key"]
    assert read == value
    assert type(read) is type(value)


def test_not_a_number_is_read_as_such() -> None:
    assert math.isnan(parse_yaml(b"[.nan]", name="w.yaml").value[0])


def test_every_node_knows_its_line() -> None:
    tree = parse_yaml(b"a: 1\nb:\n  c:\n    - x\n    - {d: 2,\n       e: 3}\n", name="w.yaml")
    assert tree.line_of(("a",)) == 1
    assert tree.line_of(("b", "c")) == 3
    assert tree.line_of(("b", "c", 1, "e")) == 6
    assert tree.line_of(("b", "c", 1, "missing")) == 5
    assert tree.line_of(("nowhere", "x")) == 1


@pytest.mark.parametrize(
    ("text", "line", "words"),
    [
        ("a: 1\nb: 2\na: 3\n", 3, "line 1"),
        ("a: !!python/object:os.system 1\n", 1, "tag"),
        ("a: 1\n---\nb: 2\n", 2, "second document"),
        ("a: *x\n", 1, "alias"),
        ("a: 1\n  b: 2\n", 2, "not valid YAML"),
        ("a: [1, 2\nb: 3\n", 2, "not valid YAML"),
        ("? [a, b]\n: 1\n", 1, "key must be a word"),
        ("? {a: b}\n: 1\n", 1, "key must be a word"),
        ("\n\na: " + "9" * 5000, 3, "5000 digits"),
        ("\na: " + "[" * (MAX_DEPTH + 1), 2, "nested"),
    ],
)
def test_what_a_configuration_never_needs_is_refused_with_its_line(
    text: str, line: int, words: str
) -> None:
    with pytest.raises(ConfigError) as caught:
        parse_yaml(text.encode(), name="w.yaml")
    assert caught.value.where == f"w.yaml:{line}"
    assert words in str(caught.value)


def test_aliases_that_blow_up_are_refused() -> None:
    levels = [f"a{i}: &a{i} [{', '.join([f'*a{i - 1}'] * 10)}]" for i in range(1, 9)]
    text = "\n".join(["a0: &a0 [x, x, x, x, x, x, x, x, x, x]", *levels])
    with pytest.raises(ConfigError, match="more than"):
        parse_yaml(text.encode(), name="w.yaml")


def test_a_few_aliases_are_read() -> None:
    text = b"one: &one {rate: 3}\ntwo: *one\n"
    assert parse_yaml(text, name="w").value == {"one": {"rate": 3}, "two": {"rate": 3}}


def test_an_alias_to_itself_names_nothing() -> None:
    with pytest.raises(ConfigError, match="names nothing"):
        parse_yaml(b"a: &a [*a]", name="w")


@pytest.mark.parametrize("content", [b"", b"# only a comment\n", b"---\n"])
def test_an_empty_file_says_what_to_do(content: bytes) -> None:
    if content == b"---\n":
        assert parse_yaml(content, name="w").value is None
        return
    with pytest.raises(ConfigError, match="config init"):
        parse_yaml(content, name="w.yaml")


def test_bytes_that_are_not_utf_8_are_placed() -> None:
    with pytest.raises(ConfigError, match=r"w\.yaml:2: byte 8 is not UTF-8"):
        parse_yaml(b"a: 1\nb: \xff\n", name="w.yaml")


def test_a_byte_order_mark_is_no_content() -> None:
    assert parse_yaml(b"\xef\xbb\xbfa: 1\n", name="w").value == {"a": 1}


def test_a_huge_file_is_refused_unread() -> None:
    with pytest.raises(ConfigError, match="larger than 1 MiB"):
        parse_yaml(b"#" * (MAX_BYTES + 1), name="w.yaml")


@given(st.binary(max_size=300))
def test_any_bytes_give_a_tree_or_a_config_error(content: bytes) -> None:
    with contextlib.suppress(ConfigError):
        parse_yaml(content, name="w.yaml")


_PLAIN = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False)
    | st.text(st.characters(codec="utf-8", exclude_categories=["Cc", "Cs"]), max_size=20),
    lambda inner: (
        st.lists(inner, max_size=4)
        | st.dictionaries(st.text("abcdefgh", min_size=1, max_size=8), inner, max_size=4)
    ),
    max_leaves=15,
)


@given(_PLAIN)
def test_what_pyyaml_writes_reads_back_the_same(value: object) -> None:
    # PyYAML quotes whatever YAML 1.1 would take for something else; 1.2 takes less, never more,
    # but for 0o17 and numbers such as 1e3, which PyYAML writes as the plain words they are to it.
    text = yaml.safe_dump({"value": value}, default_style='"' if isinstance(value, str) else None)
    words = [v for v in _leaves(value) if isinstance(v, str)]
    if any(_looks_like_a_number(word) for word in words) and not isinstance(value, str):
        return
    assert parse_yaml(text.encode(), name="w").value == {"value": value}


def _leaves(value: object) -> list[object]:
    if isinstance(value, list):
        return [leaf for item in value for leaf in _leaves(item)]
    if isinstance(value, dict):
        return [leaf for item in value.values() for leaf in _leaves(item)]
    return [value]


def _looks_like_a_number(word: str) -> bool:
    return any(char.isdigit() for char in word)
