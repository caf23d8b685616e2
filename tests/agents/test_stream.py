"""Bytes to lines to records: nothing lost at chunk borders, nothing unbounded, nothing that raises."""

import json
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bullpen.agents.stream import LineSplitter, record_from


def lines_of(chunks: list[bytes], splitter: LineSplitter | None = None) -> list[bytes]:
    splitter = splitter or LineSplitter()
    return [line for chunk in chunks for line in splitter.feed(chunk)] + splitter.finish()


@given(data=st.binary(max_size=200), cuts=st.lists(st.integers(0, 200), max_size=8))
def test_chunks_do_not_matter(data: bytes, cuts: list[int]) -> None:
    borders = [0, *sorted(min(cut, len(data)) for cut in cuts), len(data)]
    chunks = [data[start:end] for start, end in pairwise(borders)]

    assert lines_of(chunks) == lines_of([data])
    assert b"\n".join(lines_of([data])) == data.removesuffix(b"\n")


@given(data=st.binary(max_size=60), size=st.integers(1, 60), limit=st.integers(1, 8))
def test_long_lines_are_cut_and_counted(data: bytes, size: int, limit: int) -> None:
    splitter = LineSplitter(max_line_bytes=limit)
    chunks = [data[start : start + size] for start in range(0, len(data), size)]

    cut = lines_of(chunks, splitter)

    whole = lines_of([data])
    assert [line for line in cut if line] == [line[:limit] for line in whole if line]
    assert splitter.bytes_cut == sum(max(0, len(line) - limit) for line in whole)


def test_a_line_of_eight_mebibytes_is_whole() -> None:
    line = b"x" * (8 * 1024 * 1024)

    assert lines_of([line[:5], line[5:] + b"\nnext"]) == [line, b"next"]


def test_a_record_is_an_object() -> None:
    assert record_from(b'{"a": [1, "\xe4\xbd\xa0"]}\r') == {"a": [1, "你"]}


@pytest.mark.parametrize("line", [b"", b"[]", b'"x"', b"7", b"null", b"{", b"not json", b"\xff\xfe", b"[" * 100_000])
def test_anything_else_is_none(line: bytes) -> None:
    assert record_from(line) is None


def test_broken_text_in_a_good_record_is_repaired() -> None:
    assert record_from(b'{"text": "bad \xff byte", "half": "\\ud83d", "nul": "\\u0000"}') == {
        "text": "bad \ufffd byte",
        "half": "\ufffd",
        "nul": "␀",
    }


def test_a_deep_record_is_none() -> None:
    assert record_from(b'{"a":' * 100_000 + b"1" + b"}" * 100_000) is None
    assert record_from(b'{"bad": "\xff", "a":' + b"[" * 100_000 + b"]" * 100_000 + b"}") is None


@pytest.mark.parametrize("value", [b"[],", b"{},", b'"ab",', b"[[[[[[[[1]]]]]]]],", b"1.5,"])
def test_a_record_that_is_made_to_fill_the_memory_is_none(value: bytes) -> None:
    values = value * (2_000_000 // len(value))

    assert record_from(b'{"type": "user", "x": [' + values + b"1]}") is None


@pytest.mark.parametrize("text", ["[],", '{"a": [1, 2]},', "\\", '\\",[[', '"'])
def test_text_is_read_however_much_it_looks_like_values(text: str) -> None:
    record = {"type": "user", "text": text * 400_000}

    assert record_from(json.dumps(record).encode()) == record


@given(record=st.dictionaries(st.text(max_size=5), st.none() | st.integers(-(2**60), 2**60) | st.text(max_size=9)))
def test_what_json_writes_is_read(record: dict[str, object]) -> None:
    assert record_from(json.dumps(record, ensure_ascii=True).encode("utf-8", "surrogatepass")) is not None


@pytest.mark.parametrize("member", [b"[],", b"{},", b"1,", b'{"a":1},', b'"x",'])
def test_a_record_of_too_many_values_is_none(member: bytes) -> None:
    assert record_from(b'{"a":[' + member * 450_000 + b"0]}") is None


def test_a_long_text_may_hold_what_it_likes() -> None:
    text = '1,2,[3]{4}\\" ' * 200_000

    assert record_from(json.dumps({"a": text}).encode()) == {"a": text}


@pytest.mark.parametrize("line", [b' \t{"a": 1}', b'{"a": "\\ud83d"} \r', b'{"a": "\xff"}\t'])
def test_white_space_around_a_record_does_not_matter(line: bytes) -> None:
    assert record_from(line) is not None
