"""What is in a session's file that no turn left there which ended well: ours is cut off, a person's words are kept."""

import json
import os
import time
from pathlib import Path

import pytest
from tests.conversation.remembering import RememberingStage
from tests.conversation.stage import Script, tell
from tests.conversation.test_memory import SLOW, ended_badly

from bullpen.agents.held_session import WantedSession, why_not_here
from bullpen.agents.registry import agent_spec
from bullpen.agents.session_file import mark_of
from bullpen.conversation.session_rules import UNKNOWN_END_MS, left_until
from bullpen.store.base import EndState, Turn

REFUSED = "No conversation found with session ID: 1"
TOO_LONG: Script = [{"error": 400, "message": "prompt is too long: 210000 tokens > 200000 maximum"}]
CRASH: Script = [{"exit": 3}]
LOST: Script = [{"tool": {"name": "Bash", "input": {"command": "make"}}}, {"stderr": f"{REFUSED}\n"}, {"exit": 1}]
ENDED_AT = 1_700_000_000_000
BY_HAND = b'{"type":"user","message":{"role":"user","content":"by hand"}}\n'


@pytest.fixture
def team(remembering: RememberingStage) -> RememberingStage:
    """A person, and an agent that remembers."""
    remembering.person("kim")
    remembering.remembering("a")
    return remembering


def continue_by_hand(file: Path) -> bytes:
    """Continue a session as a person does with the CLI itself, and return what is in its file then."""
    with file.open("ab") as opened:
        opened.write(BY_HAND)
    # Nobody types within the millisecond in which a turn ends.
    later = time.time_ns() + 1_000_000_000
    os.utime(file, ns=(later, later))
    return file.read_bytes()


async def test_what_a_person_says_in_it_after_a_cancelled_turn_is_kept(team: RememberingStage) -> None:
    team.remembering("a", "a:1 says so.", SLOW)
    async with team.open() as conversation:
        await tell(conversation, "one [NEXT: a]")
        await ended_badly(conversation, "two [NEXT: a]")
        (file,) = team.sessions()
        before = continue_by_hand(file)
        await tell(conversation, "three [NEXT: a]")

    assert file.read_bytes() == before
    assert team.origins("a") == ["new", "resumed", "rebuilt: somebody else continued its session"]


async def test_what_a_person_says_in_it_before_a_turn_elsewhere_fails_is_kept(team: RememberingStage) -> None:
    team.remembering("a", "a:1 says so.", CRASH)
    async with team.open() as conversation:
        await tell(conversation, "one [NEXT: a]")
        (file,) = team.sessions()
        before = continue_by_hand(file)
        await tell(conversation, "two [NEXT: a]")
        await conversation.skip()
        await tell(conversation, "three [NEXT: a]")

    assert file.read_bytes() == before
    assert team.origins("a")[1:] == ["rebuilt: somebody else continued its session"] * 2


@pytest.mark.parametrize(
    ("state", "later", "is_ours"),
    [
        ("failed", 0, True),
        ("failed", 1, False),
        ("interrupted", UNKNOWN_END_MS, True),
        ("interrupted", UNKNOWN_END_MS + 1, False),
    ],
)
def test_only_what_is_not_newer_than_the_turn_is_its_own(
    state: EndState, later: int, is_ours: bool, tmp_path: Path
) -> None:
    sessions = agent_spec("claude").sessions
    assert sessions is not None
    file = tmp_path / "projects" / "p" / "some-session.jsonl"
    file.parent.mkdir(parents=True)
    file.write_bytes(b"{}\n")
    mark = mark_of(file)
    continue_by_hand(file)
    os.utime(file, ns=(0, (ENDED_AT + later) * 1_000_000))
    turn = Turn(id="2", member="a", message_id="msg-1", state=state, queued_at=1, ended_at=ENDED_AT)

    def may_be_cut(turns: list[Turn]) -> bool:
        wanted = WantedSession(id="some-session", mark=mark, left_until=left_until(turns))
        return why_not_here(sessions, {"CLAUDE_CONFIG_DIR": str(tmp_path)}, wanted) == ("", file)

    assert may_be_cut([turn]) == is_ours
    assert not may_be_cut([])


@pytest.mark.parametrize(
    ("ends", "reason"),
    [
        ([TOO_LONG], "its last turn in its session was too long for its model"),
        ([LOST], "its CLI lost its session in its last turn"),
        ([CRASH, CRASH], "its last two turns in its session failed"),
        ([CRASH, SLOW], ""),
    ],
    ids=["too long", "lost", "crashed twice", "crashed and cancelled"],
)
async def test_a_session_in_which_every_turn_fails_is_not_continued_forever(
    ends: list[Script], reason: str, team: RememberingStage
) -> None:
    team.remembering("a", "a:1 says so.", *ends)
    async with team.open() as conversation:
        await tell(conversation, "one [NEXT: a]")
        for end in ends:
            await (ended_badly if end is SLOW else tell)(conversation, "again [NEXT: a]")
            await conversation.skip()
        await tell(conversation, "last [NEXT: a]")

    assert team.origins("a")[-1] == (f"rebuilt: {reason}" if reason else "resumed")
    assert set(team.origins("a")[1:-1]) == {"resumed"}


async def test_a_turn_that_has_done_something_is_not_done_again_without_being_asked_for(team: RememberingStage) -> None:
    team.remembering("a", "a:1 says so.", LOST)
    async with team.open() as conversation:
        await tell(conversation, "one [NEXT: a]")
        await tell(conversation, "two [NEXT: a]")
        assert [turn.failure and turn.failure.kind for turn in conversation.undecided] == ["session_lost"]

    assert team.origins("a") == ["new", "resumed"]


async def test_a_session_that_a_turn_has_left_as_it_was_is_not_continued(team: RememberingStage) -> None:
    """Its CLI was told to keep nothing, or could not: the next turn would not know what this one was given."""
    async with team.open() as conversation:
        await tell(conversation, "one [NEXT: a]")
        begin = {"type": "system", "subtype": "init", "session_id": team.memory("a").session_id}
        end = {"type": "result", "subtype": "success", "is_error": False, "result": "a:2 says so."}
        team.script("a", [{"read": False}, {"raw": f"{json.dumps(begin)}\n{json.dumps(end)}\n"}, {"exit": 0}], 2)
        await tell(conversation, "two [NEXT: a]")
        await tell(conversation, "three [NEXT: a]")

    assert team.origins("a") == ["new", "resumed", "rebuilt: its last turn left no session"]
    assert [word in team.prompt_texts("a")[2] for word in ("one", "two", "a:2 says", "three")] == [True] * 4
