"""bullpen sessions, on real files."""

import builtins
import json
import os
import pty
import stat
import sys
import time
from pathlib import Path

import pytest
from tests import forked
from tests.view.remembering import GONE, SECOND, write_remembering

from bullpen.agents.process_tree import boot_id, process_id
from bullpen.cli import main
from bullpen.conversation.owner import this_process
from bullpen.messages import ConversationMessage, Speaker
from bullpen.store import message_rows
from bullpen.store.base import Owner, StateChange
from bullpen.store.sqlite import SqliteStore
from bullpen.testing.conversations import EXAMPLE_ID, KAI, write_example
from bullpen.text.numbers import local_time

Printed = pytest.CaptureFixture[str]


def printed(capsys: Printed, *words: str, code: int = 0) -> str:
    assert main(["sessions", *words]) == code
    return capsys.readouterr().out


def refused(capsys: Printed, *words: str, code: int = 1) -> str:
    assert main(["sessions", *words]) == code
    return capsys.readouterr().err


NOTHING = "No conversations yet. `bullpen chat team.toml` starts one.\n"


def test_before_the_first_conversation(empty_home: Path, capsys: Printed) -> None:
    assert printed(capsys) == NOTHING
    assert printed(capsys, "--json") == "[]\n"
    assert refused(capsys, "show", "last") == f"bullpen: {NOTHING}"
    assert refused(capsys, "search", "x") == f"bullpen: {NOTHING}"
    assert refused(capsys, "export", "x", "--output", "out.md") == f"bullpen: {NOTHING}"
    assert refused(capsys, "delete", "x", "--yes") == f"bullpen: {NOTHING}"
    assert not empty_home.parent.exists()
    assert not Path("out.md").exists()


def test_a_file_without_conversations(empty_home: Path, capsys: Printed) -> None:
    SqliteStore(empty_home).close()

    assert printed(capsys) == NOTHING
    assert refused(capsys, "show", "last") == f"bullpen: {NOTHING}"


def test_the_list(database: Path, capsys: Printed) -> None:
    with SqliteStore(database) as store:
        store.create("old", team="团队", team_file="", started_at=86_400_000)
        store.append("old", ConversationMessage(id="m", content="Tea?", speaker=KAI, timestamp=86_400_000))
        used = {"used": {"ada": {"turns": 1, "tokens": 900, "cost_usd": 0.0123}}}
        store.update("old", at=1, change=StateChange(waits_for="kai", progress=used))

    assert printed(capsys) == printed(capsys, "list")
    assert printed(capsys) == (
        "id                team      last        messages  cost     state               title\n"
        "quiet-river-4f2a  Builders  2025-03-03  6                  ○ asleep, 1 queued  Where do we start?\n"
        "old               团队      1970-01-02  1         $0.0123  ○ asleep            Tea?\n"
    )
    newest, oldest = json.loads(printed(capsys, "--json"))
    assert (newest["id"], newest["messages"], newest["queued"]) == (EXAMPLE_ID, 6, 1)
    assert oldest == {
        "id": "old",
        "team": "团队",
        "title": "Tea?",
        "started_at": 86_400_000,
        "last_at": oldest["last_at"],
        "messages": 1,
        "state": "waiting",
        "queued": 0,
        "running": 0,
        "waits_for": "kai",
        "paused": None,
        "activity": "asleep",
        "first_words": "Tea?",
        "folder": "",
        "cost_usd": 0.0123,
        "is_estimate": False,
        "tokens": 900,
    }
    assert printed(capsys, "list", "--json") == printed(capsys, "--json")


def test_the_list_of_a_team_a_folder_or_with_some_words(
    database: Path, capsys: Printed, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    with SqliteStore(database) as store:
        for number, folder in enumerate(("shop", "shop/api", "shop-2")):
            path = str(tmp_path / folder / "team.toml")
            store.create(f"new-{number}", team=folder, team_file="", team_path=path, started_at=number)
            store.append(f"new-{number}", ConversationMessage(id=f"m{number}", content="Tea?", speaker=KAI))
    monkeypatch.chdir(tmp_path)

    def ids(*words: str) -> set[str]:
        return {one["id"] for one in json.loads(printed(capsys, *words, "--json"))}

    assert ids() == {EXAMPLE_ID, "new-0", "new-1", "new-2"}
    assert ids("--folder", "shop") == ids("list", "--folder", str(tmp_path / "shop")) == {"new-0", "new-1"}
    assert ids("--team", "SHOP") == {"new-0"}
    assert ids("list", "start", "WHERE") == {EXAMPLE_ID}
    assert ids("list", "new-1") == {"new-1"}
    assert "No conversation is like that." in printed(capsys, "list", "nothing", "of", "it")
    row = next(line for line in printed(capsys).splitlines() if line.startswith("new-1"))
    assert row.split()[:3] == ["new-1", "shop/api", "~/shop/api"]


def test_a_title_and_the_archive(database: Path, capsys: Printed) -> None:
    assert printed(capsys, "rename", "last", "The", " login") == f"{EXAMPLE_ID} is called: The login\n"
    assert printed(capsys).endswith("  The login\n")
    assert printed(capsys, "rename", "last", "-") == f"{EXAMPLE_ID} is called: Where do we start?\n"
    assert printed(capsys, "--archived") == "Nothing is archived.\n"
    assert printed(capsys, "archive", EXAMPLE_ID[:5]) == f"Archived {EXAMPLE_ID}: Where do we start?\n"
    assert EXAMPLE_ID not in printed(capsys)
    assert EXAMPLE_ID in printed(capsys, "list", "--archived")
    assert printed(capsys, "unarchive", "last") == f"{EXAMPLE_ID} is in the list again: Where do we start?\n"
    assert EXAMPLE_ID in printed(capsys)


def test_what_is_open_elsewhere_is_not_archived(database: Path, capsys: Printed) -> None:
    me = process_id(os.getpid())
    assert me is not None
    with SqliteStore(database) as store:
        owner = Owner(token="t", pid=me.pid, start_time=me.start_time, boot_id=boot_id())
        store.claim(EXAMPLE_ID, owner, is_alive=lambda _: False)
        told = refused(capsys, "archive", "last")

    assert told == f"bullpen: Process {me.pid} has {EXAMPLE_ID} open. Close it there first.\n"


def test_today_is_shown_by_the_hour(database: Path, capsys: Printed) -> None:
    now = time.time_ns() // 1_000_000
    with SqliteStore(database) as store:
        store.update(EXAMPLE_ID, at=now)

    assert f"  {time.strftime('%H:%M', time.localtime(now / 1000))}  " in printed(capsys)


def test_another_file(database: Path, capsys: Printed) -> None:
    moved = str(database.rename(database.with_name("other.db")))

    assert printed(capsys) == NOTHING
    assert EXAMPLE_ID in printed(capsys, "--db", moved)
    assert EXAMPLE_ID in printed(capsys, "list", "--db", moved)


LAST_TWO = """\
quiet-river-4f2a  team Builders, 6 messages
4 earlier messages: --last N or --all shows more.

#5  Kai → sarah, max  2025-03-03 09:04
  Sarah, please review it, and Max, please write the test.

#6  Sarah → kai  2025-03-03 09:05
  The cookie needs SameSite.

max, turn 4 failed after 29 s  2025-03-03 09:04
  The quota is used up until 11:00. Wait, or hand over.
  Test 1:\x20
"""


@pytest.mark.parametrize("reference", ["quiet-river-4f2a", "q", "last"])
def test_the_last_messages(database: Path, capsys: Printed, reference: str) -> None:
    assert printed(capsys, "show", reference, "--last", "2") == LAST_TWO


def test_all_messages(database: Path, capsys: Printed) -> None:
    shown = printed(capsys, "show", "q", "--all")

    assert "earlier" not in shown
    assert [line[:2] for line in shown.splitlines() if line.startswith("#")] == [f"#{n}" for n in range(1, 7)]
    lines = printed(capsys, "show", "q", "--all", "--json").splitlines()
    assert [json.loads(line)["sequence"] for line in lines] == [1, 2, 3, 4, 5, 6]


def test_a_reference_must_fit_one(database: Path, capsys: Printed) -> None:
    with SqliteStore(database) as store:
        store.create("quiet-lake-0000", team="T", team_file="", started_at=1)

    assert refused(capsys, "show", "quiet-") == (
        "bullpen: 'quiet-' matches 2 conversations: quiet-river-4f2a, quiet-lake-0000. Type more of the id.\n"
    )
    assert "There is no conversation 'loud'" in refused(capsys, "show", "loud")
    assert "There is no conversation ''" in refused(capsys, "show", "")


def test_search(database: Path, capsys: Printed) -> None:
    assert printed(capsys, "search", "怎么") == (
        "quiet-river-4f2a #3 Kai  2025-03-03 09:02\n  Cookie or token? 你怎么看?\n"
    )
    assert printed(capsys, "search", "cookie", "--limit", "1").startswith("quiet-river-4f2a #6 Sarah")
    assert printed(capsys, "search", "cookie", "--session", "q").count("\nquiet-river") == 3
    (found,) = json.loads(printed(capsys, "search", "SameSite", "--json"))
    assert sorted(found) == ["conversation_id", "message_id", "sequence", "snippet", "speaker", "timestamp"]
    assert (found["conversation_id"], found["sequence"], found["speaker"]["roleName"]) == (EXAMPLE_ID, 6, "Sarah")
    assert printed(capsys, "search", "giraffe", code=1).startswith("Nothing found for giraffe.")


def test_an_agent_cannot_speak_for_us_on_a_terminal(empty_home: Path, capsys: Printed) -> None:
    forged = "hi\x1b[2J\n\n#2  Kai → max  2025-03-03 09:04\u2028#3  Kai\n"
    speaker = Speaker(role_id="m", role_name="Max\x1b[31m\n#9  Kai", type="ai")
    with SqliteStore(empty_home) as store:
        store.create("c", team="T\x1b", team_file="", started_at=1)
        store.append("c", ConversationMessage(id="m", content=forged, speaker=speaker))

    for words in (["show", "c"], ["search", "hi"], []):
        shown = printed(capsys, *words)
        assert "\x1b" not in shown
        assert [line for line in shown.splitlines() if line.startswith("#")] == (
            ["#1  Max\ufffd[31m #9  Kai  "] if words[:1] == ["show"] else []
        )


def on_a_terminal(*words: str, columns: int = 80) -> str:
    """Run a command with a real terminal as its output."""
    leader, follower = pty.openpty()
    environment = {**os.environ, "COLUMNS": str(columns), "TERM": "xterm"}
    command = [sys.executable, "-m", "bullpen", *words]
    process = forked.start(command, stdout=follower, stderr=follower, stdin=follower, env=environment)
    os.close(follower)
    output = b""
    try:
        while piece := os.read(leader, 65536):
            output += piece
    except OSError:
        # Linux says so when the other end is closed.
        pass
    os.close(leader)
    assert process.wait() == 0
    return output.decode()


def test_on_a_terminal_lines_fit_and_only_our_headings_have_colours(database: Path) -> None:
    with SqliteStore(database) as store:
        padding = "x" * 80 + "#7  Kai  "
        store.append(EXAMPLE_ID, ConversationMessage(id="m7", content=f"{padding * 3}\x1b[1;36m", speaker=KAI))

    shown = on_a_terminal("sessions", "show", "last").splitlines()
    listed = on_a_terminal("sessions", columns=71).splitlines()

    assert max(len(line) for line in shown if "\x1b" not in line) <= 80
    assert [line for line in shown if line.startswith("#")] == []
    # The conversation, seven messages, and a turn without a reply.
    assert len([line for line in shown if "\x1b" in line]) == 9
    assert listed[1] == "quiet-river-4f2a  Builders  2025-03-03  7         ○ asleep, 1 queued  Wher…"


@pytest.mark.parametrize("file_format", ["md", "html", "json"])
def test_export_to_a_file(database: Path, capsys: Printed, file_format: str) -> None:
    path = Path(f"out.{file_format}")

    assert printed(capsys, "export", "last", "--output", str(path)) == f"{path}: 6 messages of quiet-river-4f2a.\n"

    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    beginning = {"md": "# Where do we start?", "html": "<!doctype html>", "json": '{"version": 1,'}[file_format]
    written = path.read_text()
    assert written.startswith(beginning)
    assert printed(capsys, "export", "last", "--format", file_format) == written

    path.write_text("mine")
    assert "add --force" in refused(capsys, "export", "last", "--output", str(path))
    assert path.read_text() == "mine"
    printed(capsys, "export", "last", "--output", str(path), "--force")
    assert path.read_text() == written


def test_prompts_are_for_json(database: Path, capsys: Printed, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ANTHROPIC_API_KEY", "sk-secret")

    assert "no format 'pdf', only md, html and json" in refused(capsys, "export", "--output", "x.pdf", code=2)
    assert not Path("x.pdf").exists()
    printed(capsys, "export", "--output", "x.pdf", "--format", "html")
    assert Path("x.pdf").read_text().startswith("<!doctype html>")
    assert "Only JSON can hold prompts" in refused(capsys, "export", "last", "--prompts", code=2)
    with_prompts = printed(capsys, "export", "last", "--format", "json", "--prompts")
    assert "You are Sarah." in with_prompts
    assert "sk-secret" not in with_prompts


def test_deleting_needs_a_yes(database: Path, capsys: Printed, monkeypatch: pytest.MonkeyPatch) -> None:
    assert "Add --yes" in refused(capsys, "delete", "last", code=2)

    monkeypatch.setattr(sys.stdin, "isatty", lambda: True)
    questions: list[str] = []
    for answer in ("n", "y"):

        def answered(question: str, said: str = answer) -> str:
            questions.append(question)
            return said

        monkeypatch.setattr(builtins, "input", answered)
        shown = printed(capsys, "delete", "last", code=0 if answer == "y" else 1)

        assert shown.startswith({"n": "Nothing was deleted.", "y": "Deleted quiet-river-4f2a"}[answer])
        with SqliteStore(database) as store:
            assert len(store.conversations()) == (0 if answer == "y" else 1)
    assert questions[0] == "Delete quiet-river-4f2a (6 messages, team Builders) for good? [y/N] "


def test_deleting_without_a_question(database: Path, capsys: Printed) -> None:
    assert printed(capsys, "delete", "q", "--yes") == "Deleted quiet-river-4f2a (6 messages, team Builders).\n"
    assert printed(capsys) == NOTHING


def test_what_is_open_elsewhere_is_not_deleted(database: Path, capsys: Printed) -> None:
    me = process_id(os.getpid())
    assert me is not None
    owner = Owner(token="t", pid=me.pid, start_time=me.start_time, boot_id=boot_id())
    with SqliteStore(database) as store:
        store.claim(EXAMPLE_ID, owner, is_alive=lambda _: False)
        assert f"Process {me.pid} has quiet-river-4f2a open." in refused(capsys, "delete", "q", "--yes")

    assert EXAMPLE_ID in printed(capsys)


def test_what_was_opened_while_a_person_was_asked_is_not_deleted(
    database: Path, capsys: Printed, monkeypatch: pytest.MonkeyPatch
) -> None:
    with SqliteStore(database) as other:

        def opened_meanwhile(_: str) -> str:
            assert other.claim(EXAMPLE_ID, this_process(), is_alive=lambda _: False)
            return "y"

        monkeypatch.setattr(sys.stdin, "isatty", lambda: True)
        monkeypatch.setattr(builtins, "input", opened_meanwhile)
        assert "open. Close it there first. Nothing was deleted." in refused(capsys, "delete", "last")

    assert EXAMPLE_ID in printed(capsys)


def test_only_what_is_shown_is_read(empty_home: Path, capsys: Printed, monkeypatch: pytest.MonkeyPatch) -> None:
    with SqliteStore(empty_home) as store:
        store.create("long", team="T", team_file="", started_at=1)
        for number in range(300):
            store.append("long", ConversationMessage(id=f"m{number}", content="x", speaker=KAI))
        for number in range(50):
            write_example(store, f"other-{number}")
    read: list[object] = []
    stored_message = message_rows.stored_message

    def counted(row: message_rows.Row) -> object:
        read.append(row)
        return stored_message(row)

    monkeypatch.setattr(message_rows, "stored_message", counted)

    assert printed(capsys).count("\n") == 52
    assert read == []
    printed(capsys, "show", "long", "--last", "20")
    assert 20 <= len(read) <= 21


def test_what_the_agents_remember(empty_home: Path, capsys: Printed) -> None:
    with SqliteStore(empty_home) as store:
        write_remembering(store)

    shown = printed(capsys, "show", "--memory")
    lines = [json.loads(line) for line in printed(capsys, "show", "warm", "--memory", "--json").splitlines()]

    assert shown == (
        "warm-river-1  team Shop: what its agents remember\n"
        f"  max: remembers 2 turns · 12k tokens since {local_time(lines[0]['since'])}, session {SECOND}\n"
        "  ada: no memory of its own: gemini does not continue a session exactly as it was\n"
    )
    assert [(line["member"], line["kind"], line["turns"], line["session_id"]) for line in lines] == [
        ("max", "own", 2, SECOND),
        ("ada", "shared", 0, ""),
    ]
    assert f"  Answer 3\n(rebuilt: {GONE})\n" in printed(capsys, "show")
    said = [json.loads(line) for line in printed(capsys, "show", "--json").splitlines()]
    assert {line["sequence"]: line["rebuilt"] for line in said if "rebuilt" in line} == {6: GONE}
