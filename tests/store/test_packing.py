"""What lies on the disk: small, bounded, and checked."""

import os

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bullpen.store.packing import (
    MAX_RAW_STREAM_BYTES,
    MAX_STREAM_BYTES,
    DamagedData,
    StreamPacker,
    packed,
    packed_text,
    unpacked,
    unpacked_text,
)

KIB = 1024
MIB = 1024 * KIB


@given(st.binary(max_size=2000))
def test_bytes_come_back(data: bytes) -> None:
    assert unpacked(packed(data)) == data


@given(st.text(max_size=2000))
def test_text_comes_back_and_never_grows(text: str) -> None:
    stored = packed_text(text)

    assert unpacked_text(stored) == text
    assert len(stored if isinstance(stored, bytes) else stored.encode()) <= len(text.encode())


@given(data=st.binary(max_size=300), place=st.integers(0, 10_000), flip=st.integers(1, 255))
def test_a_changed_byte_is_noticed(data: bytes, place: int, flip: int) -> None:
    blob = bytearray(packed(data))
    blob[place % len(blob)] ^= flip

    with pytest.raises(DamagedData):
        unpacked(bytes(blob))


@pytest.mark.parametrize("damaged", [b"", b"\0\0\0\0", None, "text", 7])
def test_what_was_never_packed_is_noticed(damaged: object) -> None:
    with pytest.raises(DamagedData):
        unpacked(damaged)


@given(st.lists(st.binary(max_size=500), max_size=20))
def test_a_stream_comes_back(pieces: list[bytes]) -> None:
    packer = StreamPacker()
    for piece in pieces:
        packer.feed(piece)
    stream = packer.finish()

    assert (unpacked(stream.data), stream.is_cut) == (b"".join(pieces), False)


def test_a_stream_that_does_not_shrink_is_cut() -> None:
    data = os.urandom(6 * MIB)
    packer = StreamPacker()
    for start in range(0, len(data), 100 * KIB):
        packer.feed(data[start : start + 100 * KIB])
    stream = packer.finish()

    kept = unpacked(stream.data)
    assert stream.is_cut
    assert MAX_STREAM_BYTES - 256 * KIB < len(stream.data) <= MAX_STREAM_BYTES
    assert data.startswith(kept)


def test_a_stream_that_shrinks_to_nothing_is_cut_all_the_same() -> None:
    packer = StreamPacker()
    for _ in range(70):
        packer.feed(bytes(MIB))
    stream = packer.finish()

    assert stream.is_cut
    assert len(unpacked(stream.data)) == MAX_RAW_STREAM_BYTES
    assert len(stream.data) < MIB
