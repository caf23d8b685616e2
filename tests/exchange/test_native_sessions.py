"""A session of a CLI as the memory of a member, from sessions that the genuine CLIs wrote."""

import json
from pathlib import Path

import pytest
from msgspec.structs import replace
from tests.exchange.recorded_sessions import FIRST, FOLDER, HOMES, TYPED, copy_homes, session_files

from bullpen.agents.session_file import compared
from bullpen.conversation.member_agent import agent_for
from bullpen.conversation.memories import Memories
from bullpen.exchange.cli_sessions.finding import READERS, CliSession, CliSessions
from bullpen.exchange.importing import import_conversation
from bullpen.exchange.native_sessions import memory_of
from bullpen.exchange.session_import import cast_of, imported_session
from bullpen.memory import MemberMemory, Memory
from bullpen.routing.progress import Progress
from bullpen.store.sqlite import SqliteStore
from bullpen.team.reader import read_team
from bullpen.team.team import Member, Team
from bullpen.turn_events import Usage

every_cli = pytest.mark.parametrize("cli", [cli for cli in HOMES if cli != "gemini"])


@pytest.fixture(autouse=True)
def homes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> dict[str, Path]:
    return copy_homes(tmp_path, monkeypatch)


def session_of(cli: str, session_id: str) -> CliSession:
    return CliSessions(cli).session(session_id, Path(FOLDER))


def team(cli: str, *lines: str) -> Team:
    text = [f'name = "t"\nlead = "ann"\n[[member]]\nname = "kim"\n[[member]]\nname = "ann"\nagent = "{cli}"', *lines]
    return read_team("\n".join(text))


def member(cli: str, *lines: str) -> Member:
    return team(cli, *lines).member("ann")


def memory(session: CliSession, member: Member | None) -> Memory:
    found = memory_of(session, member)
    assert found is not None
    return found.memory


@every_cli
def test_the_member_has_seen_everything_in_it(cli: str) -> None:
    session = session_of(cli, FIRST[cli])

    imported = imported_session(session, cast_of(cli, team(cli)))

    (borrowed,) = imported.sessions.values()
    assert list(imported.sessions) == ["ann"]
    said = imported.messages[[message.id for message in imported.messages].index(borrowed.reply_id)]
    assert said.speaker.role_id == "ann"
    left = borrowed.memory
    assert (left.session_id, left.agent) == (FIRST[cli], READERS[cli].agent)
    assert (left.since, left.seen_to, left.folder) == (1, len(imported.messages), FOLDER)
    assert compared(session.file, left.file) == "same"
    assert not left.is_shortened


@pytest.mark.parametrize("cli", ["claude", "qwen"])
def test_a_session_that_its_cli_has_shortened_is_known_as_such(cli: str) -> None:
    assert memory(session_of(cli, TYPED[cli]), None).is_shortened


@pytest.mark.parametrize("cli", ["claude", "qwen"])
def test_what_was_used_in_it_is_what_its_cli_counts(cli: str) -> None:
    session = session_of(cli, FIRST[cli])
    records = [json.loads(line) for line in session.file.read_text(encoding="utf-8").splitlines()]

    used = memory(session, None).used

    assert used is not None
    if cli == "claude":
        states = [record for record in records if record["type"] == "cost-state"]
        assert used.cost_usd == states[-1]["totalCostUSD"] > 0
    else:
        counts = [record["usageMetadata"] for record in records if "usageMetadata" in record]
        assert used.input_tokens == sum(count["promptTokenCount"] for count in counts) > 0


@pytest.fixture
def codex_session(homes: dict[str, Path]) -> CliSession:
    """A session with what the recordings leave out, as codex 0.166.0 writes it."""
    total = {"input_tokens": 222, "cached_input_tokens": 22, "output_tokens": 44, "total_tokens": 266}
    more: list[dict[str, object]] = [
        {"type": "turn_context", "payload": {"cwd": FOLDER, "model": "gpt-5.5"}},
        {"type": "event_msg", "payload": {"type": "token_count", "info": {"total_token_usage": total}}},
        {"type": "event_msg", "payload": {"type": "token_count", "info": None}},
    ]
    with session_of("codex", FIRST["codex"]).file.open("a", encoding="utf-8") as file:
        file.writelines(f"{json.dumps(record)}\n" for record in more)
    return session_of("codex", FIRST["codex"])


def test_codex_counts_what_was_used_itself(codex_session: CliSession) -> None:
    assert memory(codex_session, None).used == Usage(input_tokens=222, cached_tokens=22, output_tokens=44)


def test_what_is_added_after_it_was_found_is_not_in_the_mark() -> None:
    session = session_of("claude", FIRST["claude"])
    with session.file.open("ab") as file:
        file.write(b"{}\n")

    assert compared(session.file, memory(session, None).file) == "longer"


def test_codex_continues_only_with_the_model_of_the_session_or_with_the_usual_one(codex_session: CliSession) -> None:
    assert memory(codex_session, member("codex")).model is None
    assert memory(codex_session, member("codex", 'model = "another"')).model == "gpt-5.5"
    assert memory(session_of("claude", FIRST["claude"]), member("claude", 'model = "any"')).model == "any"


def test_a_member_that_runs_another_cli_continues_from_the_text() -> None:
    session = session_of("claude", FIRST["claude"])

    assert memory_of(session, member("codex")) is None
    assert memory_of(session, member("claude")) is not None
    assert imported_session(session, cast_of("claude", team("codex"), "ann")).sessions == {}


@pytest.mark.parametrize("name", ["Cargo", "../Cargo", "a\0b"])
def test_a_session_that_calls_itself_a_path_is_imported_and_never_continued(
    name: str, homes: dict[str, Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its lock would be the file of that name with .lock, which is removed when the turn has ended."""
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    precious = tmp_path / "Cargo.lock"
    precious.write_text("precious", encoding="utf-8")
    hostile = str(tmp_path / name) if name == "Cargo" else name
    for file in session_files(homes["gemini"]):
        file.write_text(file.read_text(encoding="utf-8").replace(FIRST["gemini"], json.dumps(hostile)[1:-1]))
    imported = imported_session(session_of("gemini", hostile), cast_of("gemini", team("gemini")))
    assert not imported.sessions

    # As an earlier version would have stored it.
    left = MemberMemory(turn_id="", reply_id="msg-2", memory=replace(claude_memory(), session_id=hostile))
    with SqliteStore(tmp_path / "c.db") as store:
        conversation_id = import_conversation(store, replace(imported, sessions={"ann": left}))
        progress = Progress(borrowed={"ann": left})
        for cli in ("gemini", "claude"):
            plan = Memories(store, conversation_id).enter(agent_for(member(cli), tmp_path), progress)
            assert plan is None or plan.use.origin == "rebuilt"
    assert precious.read_text(encoding="utf-8") == "precious"


def claude_memory() -> Memory:
    return memory(session_of("claude", FIRST["claude"]), member("claude"))
