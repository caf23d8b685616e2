"""What a person typed before, kept in a private file."""

from pathlib import Path

from bullpen.terminal.input_history import MOST_ENTRIES, InputHistory


def test_entries_keep_their_lines_in_a_private_file(tmp_path: Path) -> None:
    file = tmp_path / "data" / "history"
    InputHistory(file).add("one\ntwo 你好")
    InputHistory(file).add("  ")
    InputHistory(file).add("three")

    assert InputHistory(file).entries() == ["one\ntwo 你好", "three"]
    assert file.stat().st_mode & 0o777 == 0o600
    assert file.parent.stat().st_mode & 0o777 == 0o700


def test_a_broken_file_is_no_reason_to_stop(tmp_path: Path) -> None:
    file = tmp_path / "history"
    file.write_bytes(b'"good"\nnot json\n{"a": 1}\n\xff\xfe\n"end"\n')
    folder = tmp_path / "folder"
    folder.mkdir()

    assert InputHistory(file).entries() == ["good", "end"]
    InputHistory(folder).add("x")
    InputHistory(folder).shorten()
    assert InputHistory(folder).entries() == []


def test_a_long_file_is_shortened(tmp_path: Path) -> None:
    file = tmp_path / "history"
    file.write_text("".join(f'"{number}"\n' for number in range(2 * MOST_ENTRIES + 1)))

    InputHistory(file).shorten()

    assert len(file.read_text().splitlines()) == MOST_ENTRIES
    assert InputHistory(file).entries()[-1] == str(2 * MOST_ENTRIES)
