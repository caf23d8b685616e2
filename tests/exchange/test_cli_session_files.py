"""Files of sessions that are damaged, huge or many: what can be read is read, and the right one is found."""

import json
import os
import tracemalloc
from pathlib import Path

import pytest
from tests.exchange.recorded_sessions import FIRST, FOLDER, HOMES, TYPED, copy_homes, session_files

from bullpen.errors import BullpenError
from bullpen.exchange.cli_sessions import records
from bullpen.exchange.cli_sessions.branch import Node, last_branch
from bullpen.exchange.cli_sessions.finding import MOST_LISTED, CliSession, CliSessions
from bullpen.exchange.cli_sessions.parts import Part
from bullpen.exchange.cli_sessions.records import Records
from bullpen.exchange.cli_sessions.tags import without_tags

every_cli = pytest.mark.parametrize("cli", HOMES)
HERE = Path(FOLDER)


@pytest.fixture(autouse=True)
def homes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> dict[str, Path]:
    return copy_homes(tmp_path / "homes", monkeypatch)


def file_of(home: Path, session_id: str) -> Path:
    (file,) = [path for path in session_files(home) if session_id[:8] in path.name]
    return file


def texts(session: CliSession) -> list[str]:
    return [message.text for message in session.messages]


@every_cli
def test_a_line_of_garbage_and_a_cut_line_are_left_out_and_counted(cli: str, homes: dict[str, Path]) -> None:
    file = file_of(homes[cli], FIRST[cli])
    whole = texts(CliSessions(cli).session(FIRST[cli], HERE))
    first, *lines = file.read_bytes().splitlines(keepends=True)
    file.write_bytes(b"".join([first, b"{garbage\xff\n", b"[1]\n", b"\n", *lines, b'{"type":"user","message":{"con']))

    damaged = CliSessions(cli).session(FIRST[cli], HERE)

    assert texts(damaged) == whole
    assert damaged.unreadable == 3


@every_cli
def test_a_session_can_be_cut_anywhere(cli: str, homes: dict[str, Path]) -> None:
    file = file_of(homes[cli], FIRST[cli])
    content = file.read_bytes()
    whole = texts(CliSessions(cli).session(FIRST[cli], HERE))
    header = content.index(b"\n") + 1

    for size in range(header, len(content), 531):
        file.write_bytes(content[:size])
        cut = texts(CliSessions(cli).session(FIRST[cli], HERE))
        # The last message may be incomplete.
        assert cut[:-1] == whole[: len(cut)][:-1]


@every_cli
def test_any_line_may_be_missing(cli: str, homes: dict[str, Path]) -> None:
    file = file_of(homes[cli], FIRST[cli])
    lines = file.read_bytes().splitlines(keepends=True)

    for missing in range(1, len(lines)):
        file.write_bytes(b"".join([*lines[:missing], b"\x00\x00\n", *lines[missing + 1 :]]))
        damaged = CliSessions(cli).session(FIRST[cli], HERE)
        assert damaged.unreadable == 1
        assert len(damaged.messages) >= 3


def test_half_an_emoji_is_replaced(homes: dict[str, Path]) -> None:
    file = file_of(homes["claude"], FIRST["claude"])
    file.write_bytes(file.read_bytes().replace("。😀".encode(), b"\\ud83d"))

    session = CliSessions("claude").session(FIRST["claude"], HERE)

    assert texts(session)[0] == "Please read notes.txt.\n请用中文总结\ufffd"
    assert session.unreadable == 0


def test_a_message_without_a_plausible_time_has_that_of_the_one_before(homes: dict[str, Path]) -> None:
    times = [
        "2026-03-02T11:00:00.000Z",
        None,
        "yesterday",
        1e30,
        10**18,
        -5,
        "2026-03-02T10:00:00Z",
        "2026-03-02T11:00:01Z",
    ]
    file = homes["qwen"] / "projects" / "-x" / "chats" / "99999999-2222-4333-8444-555555555501.jsonl"
    file.parent.mkdir(parents=True)
    with file.open("w", encoding="utf-8") as written:
        for number, time in enumerate(times):
            about = {"uuid": f"u{number}", "parentUuid": f"u{number - 1}" if number else None, "type": "user"}
            written.write(f"{json.dumps({**about, 'timestamp': time, 'message': {'parts': [{'text': 'x'}]}})}\n")

    session = CliSessions("qwen").session("99999999", HERE)

    first = 1_772_449_200_000
    assert [message.at - first for message in session.messages] == [0, 0, 0, 0, 0, 0, 0, 1_000]


def test_a_line_that_is_too_long_is_never_in_memory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(records, "LONGEST_LINE", 100_000)
    file = tmp_path / "long.jsonl"
    with file.open("wb") as written:
        written.write(b'{"a":1}\n{"b":"')
        for _ in range(200):
            written.write(b"x" * 100_000)
        written.write(b'"}\n{"c":3}\n')
    lines = Records(file)

    tracemalloc.start()
    found = list(lines)
    _, most = tracemalloc.get_traced_memory()
    tracemalloc.stop()

    assert found == [{"a": 1}, {"c": 3}]
    assert lines.unreadable == 1
    assert most < 1_000_000


def test_results_of_tools_are_not_kept_in_memory(homes: dict[str, Path]) -> None:
    file = homes["claude"] / "projects" / "-x" / "99999999-2222-4333-8444-555555555501.jsonl"
    file.parent.mkdir()
    with file.open("w", encoding="utf-8") as written:
        for number in range(300):
            call = {"type": "tool_use", "id": f"t{number}", "name": "Bash", "input": {"command": "x" * 50_000}}
            result = {"type": "tool_result", "tool_use_id": f"t{number}", "content": "y" * 50_000}
            for kind, block in (("assistant", call), ("user", result)):
                about = {"uuid": f"{kind}{number}", "parentUuid": "", "type": kind}
                written.write(f"{json.dumps({**about, 'message': {'content': [block]}})}\n")
    assert file.stat().st_size > 30_000_000

    tracemalloc.start()
    session = CliSessions("claude").session("99999999", HERE)
    _, most = tracemalloc.get_traced_memory()
    tracemalloc.stop()

    assert texts(session)[0].startswith("(used 300 tools: Bash xxx")
    assert most < 3_000_000


def test_what_is_written_meanwhile_is_not_read(homes: dict[str, Path]) -> None:
    file = file_of(homes["qwen"], FIRST["qwen"])
    lines = file.read_bytes().count(b"\n")

    found = 0
    for _ in Records(file):
        with file.open("ab") as growing:
            growing.write(b'{"more":true}\n')
        found += 1

    assert found == lines


@every_cli
def test_an_empty_file_and_what_is_not_a_file_are_not_listed(cli: str, homes: dict[str, Path]) -> None:
    before = [session.id for session in CliSessions(cli).listed(HERE)]
    file = file_of(homes[cli], FIRST[cli])
    other = "99999999-2222-4333-8444-5555555555"
    empty, pipe, folder = (
        file.with_name(file.name.replace(FIRST[cli], f"{other}{number}").replace("11111111", f"9999999{number}"))
        for number in (10, 11, 12)
    )
    empty.touch()
    os.mkfifo(pipe)
    folder.mkdir()

    assert [session.id for session in CliSessions(cli).listed(HERE)] == before


def test_a_pipe_in_a_sessions_place_is_refused_and_not_waited_for(homes: dict[str, Path]) -> None:
    file = file_of(homes["claude"], FIRST["claude"])
    file.unlink()
    os.mkfifo(file)

    with pytest.raises(BullpenError, match=r"is not a file with a session\. Nothing was written\."):
        CliSessions("claude").session(FIRST["claude"], HERE)


def test_sessions_of_this_folder_come_first_and_then_the_newest() -> None:
    sessions = CliSessions("codex")

    assert [session.id[:8] for session in sessions.listed(HERE)] == ["01a1e40c", "01a1e40a", "01a1e405"]
    assert [sessions.session("last", HERE).id] == [sessions.listed(HERE)[0].id]


def test_last_is_the_newest_of_this_folder(homes: dict[str, Path]) -> None:
    file = file_of(homes["claude"], FIRST["claude"])
    file.write_bytes(file.read_bytes().replace(FOLDER.encode(), b"/home/kai/other"))

    assert CliSessions("claude").session("last", HERE).id == TYPED["claude"]
    assert CliSessions("claude").session("last", Path("/home/kai/other")).id == FIRST["claude"]
    assert CliSessions("claude").session("last", Path("/elsewhere")).id == TYPED["claude"]


def test_what_agents_and_bullpen_began_is_not_listed_but_can_be_named(homes: dict[str, Path]) -> None:
    for session_id, old, new in (
        (FIRST["claude"], "Please read notes.txt.", "[MESSAGE]\\nFrom Kai"),
        (FIRST["codex"], '"source":"exec"', '"source":{"subagent":"review"}'),
        (FIRST["gemini"], '"kind":"main"', '"kind":"subagent"'),
    ):
        for file in (file for home in homes.values() for file in session_files(home) if session_id[:8] in file.name):
            file.write_text(file.read_text(encoding="utf-8").replace(old, new), encoding="utf-8")
    subagent = file_of(homes["claude"], TYPED["claude"])
    subagent.with_name("agent-12345678.jsonl").write_bytes(subagent.read_bytes())

    assert [session.id for session in CliSessions("claude").listed(HERE)] == [TYPED["claude"]]
    assert FIRST["codex"] not in [session.id for session in CliSessions("codex").listed(HERE)]
    assert FIRST["gemini"] not in [session.id for session in CliSessions("gemini").listed(HERE)]
    assert CliSessions("claude").session(FIRST["claude"], HERE).id == FIRST["claude"]


def test_only_the_newest_are_read_for_a_list(homes: dict[str, Path]) -> None:
    file = file_of(homes["claude"], FIRST["claude"])
    for number in range(MOST_LISTED + 5):
        another = file.with_name(f"{number:08}-2222-4333-8444-555555555501.jsonl")
        another.write_bytes(file.read_bytes())
        os.utime(another, (number + 2_000_000_000, number + 2_000_000_000))

    listed = CliSessions("claude").listed(HERE)

    assert sorted(session.id[:8] for session in listed) == [f"{number:08}" for number in range(5, MOST_LISTED + 5)]


def test_an_id_is_shown_as_short_as_it_is_clear() -> None:
    assert [session.short_id for session in CliSessions("codex").listed(HERE)] == ["01a1e40c", "01a1e40a", "01a1e405"]


@pytest.mark.parametrize(
    ("word", "sentence"),
    [
        ("01a1e4", r"'01a1e4' could be .*, 01a1e40c-ecf6-7b82-ae16-785255e0274f\. Nothing was written\."),
        ("01a1f405", r"codex has no session '01a1f405'\. Did you mean 01a1e405-cfc2-7cd0-8762-f6e1a970230f\?"),
        (
            "yesterday",
            r"codex has no session 'yesterday'\. `bullpen import --from codex --list` lists them\. Nothing was",
        ),
    ],
)
def test_an_unclear_id_is_explained(word: str, sentence: str) -> None:
    with pytest.raises(BullpenError, match=sentence):
        CliSessions("codex").session(word, HERE)


@every_cli
def test_a_cli_that_was_never_used_has_no_sessions(cli: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(HOMES[cli])
    monkeypatch.setenv("HOME", str(tmp_path / "empty"))

    assert CliSessions(cli).listed(HERE) == []
    with pytest.raises(BullpenError, match=rf"There are no sessions of {cli}\."):
        CliSessions(cli).session("last", HERE)


def node(name: str, parent: str, text: str = "", kind: str = "person") -> Node:
    return Node(name, parent, (Part(kind="person" if kind == "person" else "agent", text=text),) if text else ())


def branch(*nodes: Node) -> list[str]:
    return [part.text for part in last_branch(nodes)]


def test_the_last_branch_is_followed() -> None:
    one, two = node("a", "", "one"), node("b", "a", "two")

    assert branch(one, two, node("c", "a", "other")) == ["one", "other"]
    assert branch(one, two, node("c", "", "new")) == ["new"]
    assert branch(one, node("t1", "a", "tool", "agent"), node("t2", "a", "tool 2", "agent")) == [
        "one",
        "tool",
        "tool 2",
    ]


def test_a_branch_goes_on_before_a_damaged_record() -> None:
    one, two = node("a", "", "one"), node("b", "a", "two")

    assert branch(one, two, node("d", "lost", "three")) == ["one", "two", "three"]
    assert branch(one, node("b", "b", "itself")) == ["one", "itself"]
    assert branch(node("a", "b", "one"), node("b", "a", "two")) == ["one", "two"]
    assert branch() == []


def test_a_long_branch_takes_linear_time() -> None:
    nodes = [node(str(number), str(number - 1) if number else "", f"text {number}") for number in range(100_000)]

    assert len(branch(*nodes)) == 100_000


def test_tags_that_do_not_end_are_text() -> None:
    assert without_tags("a<x>b</x>c<x>d", ("x",)) == "ac<x>d"
    assert without_tags("<x>" * 200_000, ("x",)) == "<x>" * 200_000


def test_forks_of_forks_without_end_are_read_as_far_as_is_sensible(homes: dict[str, Path]) -> None:
    folder = homes["codex"] / "sessions" / "2026" / "01" / "01"
    folder.mkdir(parents=True)
    ids = [f"{number:08x}-1111-4222-8333-444444444444" for number in range(400)]
    for number, thread_id in enumerate(ids):
        base = {"history_base": {"thread_id": ids[number - 1], "end_ordinal_exclusive": 9}} if number else {}
        said = {"type": "message", "role": "user", "content": [{"type": "input_text", "text": f"words {number}"}]}
        about = {"type": "session_meta", "payload": {"id": thread_id, "cwd": FOLDER, **base}}
        lines = map(json.dumps, (about, {"type": "response_item", "payload": said}))
        (folder / f"rollout-2026-01-01T00-00-00-{thread_id}.jsonl").write_text("\n".join(lines), encoding="utf-8")

    session = CliSessions("codex").session(ids[-1], HERE)

    assert texts(session)[-2:] == ["words 398", "words 399"]
    assert session.missing in ids
