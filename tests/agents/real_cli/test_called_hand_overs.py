"""Replies in which hand-overs were missed, with models that call the tool instead: all of them route.

Each genuine CLI plays one reply of the corpus; with BULLPEN_WHOLE_CORPUS=1, each of the four plays all of it.
"""

import asyncio
import json
import os
from pathlib import Path

import pytest
from tests.agents.real_cli.test_tools import FIRST_FOUR as SPECS
from tests.agents.real_cli.test_tools import MODELS, called
from tests.routing.test_missed_hand_overs import CORPUS, TEAMS
from tests.routing.test_missed_hand_overs import Reply as CorpusReply

from bullpen.app import open_team
from bullpen.conversation.member_agent import Extra
from bullpen.rehearsal import SETUPS
from bullpen.team.team import Member
from bullpen.testing.models import ModelServer, Reply

MISSED = [reply for reply in CORPUS if reply.missed is not None]
IS_WHOLE = bool(os.environ.get("BULLPEN_WHOLE_CORPUS"))
EACH = 1


def played_by(cli: str) -> list[CorpusReply]:
    """Return the replies that a CLI plays: all, or one, and no two CLIs the same ones."""
    if IS_WHOLE:
        return MISSED
    own = MISSED[list(SPECS).index(cli) :: len(SPECS)]
    return own[:: len(own) // EACH][:EACH]


def write_team(folder: Path, reply: CorpusReply, cli: str) -> Path:
    """Write the reply's team, with its sender as the only one that is not a scripted program."""

    def lines(member: Member) -> list[str]:
        told = {"role": member.role, "display_name": member.display_name}
        keys: dict[str, object] = {"name": member.name, **{key: value for key, value in told.items() if value}}
        if member.name == reply.sender:
            permissions = "ask" if cli == "gemini" else "read-only"
            keys |= {"agent": cli, "model": MODELS[cli], "permissions": permissions, "memory": "shared", "tools": True}
        elif member.type == "ai":
            keys["command"] = ["echo", "Here."]
        return ["[[member]]", *(f"{key} = {json.dumps(value, ensure_ascii=False)}" for key, value in keys.items())]

    members = [line for member in TEAMS[reply.team].members for line in lines(member)]
    team = folder / "team.toml"
    team.write_text("\n".join([f"lead = {json.dumps(reply.sender, ensure_ascii=False)}", *members]), encoding="utf-8")
    return team


async def routed(folder: Path, cli: str, reply: CorpusReply) -> tuple[str, ...]:
    """Return to whom a reply goes whose model has called the tool."""
    assert reply.missed is not None
    folder.mkdir()
    async with ModelServer() as models:
        models.script(called(cli, "hand_over", to=list(reply.missed.members)), Reply(text=reply.text))
        settings = SETUPS[SPECS[cli]].settings(models.base_url, folder / "home")
        extra = {reply.sender: Extra(env={**settings.env, "IS_SANDBOX": "1"}, arguments=settings.arguments)}
        async with open_team(write_team(folder, reply, cli), db=folder / "c.db", extra=extra) as conversation:
            await conversation.say("Go.", sender=TEAMS[reply.team].people[0].name)
            await conversation.until_quiet()
            assert not conversation.undecided, [ended.sentence for ended in conversation.undecided]
            assert conversation.progress.missed is None
            answer = (await conversation.messages(limit=9))[1].message
    assert answer.speaker.role_id == reply.sender
    assert answer.routing is not None
    return tuple(answer.routing.resolved_addressees)


@pytest.mark.parametrize(
    ("cli", "reply"),
    [
        # That each can call it is in test_tools.py, too.
        pytest.param(
            *(cli, reply),
            id=f"{cli}-{reply.file}-{reply.number}",
            marks=() if IS_WHOLE or cli in ("claude", "codex") else pytest.mark.torture,
        )
        for cli in SPECS
        for reply in played_by(cli)
    ],
)
def test_a_hand_over_that_was_missed_in_words_routes_by_a_call(cli: str, reply: CorpusReply, tmp_path: Path) -> None:
    assert reply.missed is not None
    assert asyncio.run(routed(tmp_path / "folder", cli, reply)) == reply.missed.members


def test_the_clis_play_different_replies() -> None:
    played = [(reply.file, reply.number) for cli in SPECS for reply in played_by(cli)]

    assert len(played) == (len(MISSED) * len(SPECS) if IS_WHOLE else len({*played}))
