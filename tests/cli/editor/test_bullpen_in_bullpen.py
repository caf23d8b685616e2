"""A team as a member of another team: our own driver of the protocol is the other end. Two conversations, one each."""

import json
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from tests.cli.editor.client import Editor

from bullpen.store.sqlite import SqliteStore
from bullpen.team.trust import Trust

Start = Callable[..., Editor]
Write = Callable[..., Path]


@pytest.fixture
def company(tmp_path: Path, playing: Write) -> Callable[..., Path]:
    """Write a team whose only agent is the team of the shop."""

    def write(*script: dict[str, object], more: str = "", db: Path | None = tmp_path / "shop.db") -> Path:
        inner = playing(*script, more=more)
        command = [sys.executable, "-m", "bullpen", "acp", str(inner), "--trust", *(["--db", str(db)] if db else [])]
        team = tmp_path / "company" / "team.toml"
        team.parent.mkdir()
        team.write_text(
            'name = "company"\n[[member]]\nname = "lee"\n[[member]]\nname = "shop"\nagent = "acp"\n'
            f'permissions = "ask"\ncommand = {json.dumps(command)}\n',
            encoding="utf-8",
        )
        return team

    return write


def said(file: Path) -> list[tuple[str, str]]:
    with SqliteStore(file) as store:
        [conversation] = store.conversations()
        assert conversation.owner is None
        return [(one.message.speaker.role_id, one.message.content) for one in store.messages(conversation.id)]


def test_two_teams_have_one_conversation_each(
    editor: Start, company: Callable[..., Path], tmp_path: Path, home: Path
) -> None:
    company({"say": "Built."}, {"usage": {"input": 100, "output": 20, "cached": 0}})
    one = editor("company/team.toml", "--trust")
    session = one.opened(tmp_path / "company")

    written = one.prompt(session, "Build the login.")

    assert written.startswith("**shop:**\n\n**max:**\n\nBuilt.")
    assert one.leave() == 0
    outside = said(home / "data" / "conversations.db")
    assert outside[0] == ("lee", "Build the login.")
    assert outside[1][0] == "shop"
    assert outside[1][1].startswith("**max:**\n\nBuilt.")
    (person, asked), answer = said(tmp_path / "shop.db")
    assert person == "kim"
    assert "Build the login." in asked
    assert "[NEXT: lee]" in asked, "what is a marker outside is only text here"
    assert answer == ("max", "Built.")


# The protocol has no words for a refusal; but the inner bullpen says something after it, and that is its answer.
@pytest.mark.parametrize("names", [["Yes"], ["No, and say why"]])
def test_what_a_member_of_the_inner_team_asks_is_asked_outside(
    editor: Start, company: Callable[..., Path], tmp_path: Path, names: list[str]
) -> None:
    company({"ask": "touch 'a b'"})
    one = editor("company/team.toml", "--trust")
    session = one.opened(tmp_path / "company")
    number = one.begin_prompt(session, "Go.")
    for name in names:
        question = one.question()
        assert question["params"]["toolCall"]["rawInput"]["command"] == "touch 'a b'"
        assert question["params"]["toolCall"]["title"] == "shop: touch 'a b'"
        one.choose(question, name)
    assert one.answer_to(number)["result"]["stopReason"] == "end_turn"
    one.leave()
    with SqliteStore(tmp_path / "shop.db") as store:
        [conversation] = store.conversations()
        answers = [one.answer.verdict for one in store.approvals(conversation.id) if one.answer]
    assert answers == [name.lower().partition(",")[0] for name in names]


def test_cancelling_outside_cancels_inside_and_both_are_stored(
    editor: Start, company: Callable[..., Path], tmp_path: Path
) -> None:
    company({"say": "I begin."}, {"hang": True})
    one = editor("company/team.toml", "--trust")
    session = one.opened(tmp_path / "company")
    number = one.begin_prompt(session, "Go.")
    one.until(lambda message: "I begin." in str(message))
    one.send(method="session/cancel", params={"sessionId": session})

    assert one.answer_to(number)["result"]["stopReason"] == "cancelled"
    one.leave()
    with SqliteStore(tmp_path / "shop.db") as store:
        [conversation] = store.conversations()
        # The inner bullpen is told to cancel, and then stopped: either may end the turn.
        assert store.turn(conversation.id, "1").state in ("cancelled", "interrupted")


def trusted(folder: Path) -> list[str]:
    """Return the team files that a data folder trusts."""
    return [name for name in json.loads((folder / "trusted.json").read_bytes()) if name.startswith("/")]


def test_the_inner_team_has_a_data_folder_of_its_own(
    editor: Start, company: Callable[..., Path], tmp_path: Path, home: Path
) -> None:
    company({"say": "Built."}, db=None)
    one = editor("company/team.toml", "--trust")
    session = one.opened(tmp_path / "company")
    one.prompt(session, "Build the login.")
    one.leave()

    # BULLPEN_HOME is not passed on, so this is the usual folder.
    folder = home / ".local" / "share" / "bullpen"
    assert [path.name for path in folder.iterdir()] == ["within"]
    assert [speaker for speaker, _ in said(folder / "within" / "1" / "conversations.db")] == ["kim", "max"]
    assert trusted(folder / "within" / "1") == [str(tmp_path / "team.toml")]
    assert trusted(home / "data") == [str(tmp_path / "company" / "team.toml")]


def test_what_a_person_has_agreed_to_is_known_to_the_inner_team(
    editor: Start, company: Callable[..., Path], tmp_path: Path, home: Path
) -> None:
    team = company({"say": "Built."}, db=None)
    team.write_text(team.read_text(encoding="utf-8").replace('"--trust"', '"--as", "kim"'), encoding="utf-8")
    inner = tmp_path / "team.toml"
    Trust(home / ".local" / "share" / "bullpen" / "trusted.json").remember(inner, inner.read_text(encoding="utf-8"))
    one = editor("company/team.toml", "--trust")

    written = one.prompt(one.opened(tmp_path / "company"), "Build the login.")

    assert written.startswith("**shop:**\n\n**max:**\n\nBuilt.")
    one.leave()


def test_the_inner_team_cannot_have_a_database_of_the_person(
    editor: Start, company: Callable[..., Path], tmp_path: Path
) -> None:
    with SqliteStore(tmp_path / "mine.db"):
        pass
    company({"say": "Built."}, db=tmp_path / "mine.db")
    one = editor("company/team.toml", "--trust")

    written = one.prompt(one.opened(tmp_path / "company"), "Build the login.")

    assert "may be a database of yours: no team within an agent has made it." in written
    one.leave()
    with SqliteStore(tmp_path / "mine.db") as store:
        assert list(store.conversations()) == []
