"""No summary tells a member what it may not see: random conversations, and summaries that repeat all they were given.

Every message has a secret of its own. A summary says every secret that was in the prompt of who wrote it. Then every
prompt of every member, and all that it can look up, is searched for the secrets of messages that it may not see.
"""

import random
import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from msgspec import Struct
from msgspec.structs import replace

from bullpen.context.manager import ContextManager
from bullpen.conversation.consequences import speaker_of
from bullpen.conversation.member_agent import agent_for
from bullpen.conversation.prompts import Prompts
from bullpen.conversation.stored_history import StoredHistory
from bullpen.conversation.summary_prompts import planned
from bullpen.conversation.visible_history import VisibleHistory
from bullpen.messages import ConversationMessage, Routing
from bullpen.routing.progress import Progress
from bullpen.routing.queue import WaitingTurn
from bullpen.routing.summaries import Summary, mark_of
from bullpen.store.sqlite import SqliteStore
from bullpen.team.reader import read_team
from bullpen.team.team import Member, Team

TEAM = """
lead = "lead"
hand_over_note = false
[[member]]
name = "kim"
"""
SECRET = re.compile(r"secret-(\d+)\b")
CONVERSATIONS = 20


class Written(Struct):
    """A conversation that grows, and what it remembers of summaries."""

    team: Team
    store: SqliteStore
    root: Path
    progress: Progress = Progress()
    addressees: dict[int, tuple[str, ...]] = {}
    """For each ordinary message, whom it went to; nobody: everyone."""
    speakers: dict[int, str] = {}
    hidden: dict[str, set[int]] = {}
    """For each member, what it may not see yet, since others said it who do the same task."""

    @property
    def last(self) -> int:
        return self.store.message_count("c")

    def add(self, speaker: Member, content: str, to: tuple[str, ...] = (), **keys: object) -> int:
        number = self.last + 1
        message = ConversationMessage(
            id=f"msg-{number}",
            content=content,
            speaker=speaker_of(speaker),
            timestamp=number,
            routing=Routing(resolved_addressees=to),
            **keys,  # type: ignore[arg-type]
        )
        self.store.append("c", message)
        return number

    def prompts(self) -> tuple[Prompts, ContextManager]:
        history = StoredHistory(self.store, "c", messages=self.last, highest_number=self.last)
        context = ContextManager(history=history)
        return Prompts(context, self.store, "c", self.team, self.root), context

    def may_see(self, member: Member, number: int) -> bool:
        if number in self.hidden.get(member.name, ()):
            return False
        to = self.addressees[number]
        return member.visibility == "all" or not to or member.name in to or self.speakers[number] == member.name


def new_team(chance: random.Random) -> Team:
    members = [f'[[member]]\nname = "lead"\ncommand = ["true"]\nwindow = {chance.randrange(4)}\n']
    for number in range(3):
        visibility = chance.choice(["all", "addressed", "addressed"])
        size = chance.choice(["window = 2", "window = 0", "window_bytes = 200", "max_bytes = 3000"])
        members.append(f'[[member]]\nname = "m{number}"\ncommand = ["true"]\nvisibility = "{visibility}"\n{size}\n')
    return read_team(TEAM + "".join(members))


def say(talk: Written, chance: random.Random) -> None:
    speaker = chance.choice(talk.team.members)
    others = [member.name for member in talk.team.members if member != speaker]
    to = tuple(chance.sample(others, chance.randrange(3)))
    number = talk.last + 1
    talk.add(speaker, f"secret-{number} {'x' * chance.randrange(60)}", to)
    talk.addressees[number], talk.speakers[number] = to, speaker.name
    if chance.random() < 0.1 and speaker.type == "ai":
        # One of several: another one does the same task, and may not see it yet.
        rival = chance.choice(talk.team.agents)
        if rival.name not in (speaker.name, "lead"):
            talk.hidden.setdefault(rival.name, set()).add(number)


def sum_up(talk: Written, chance: random.Random) -> None:
    """Let the one who sees everything write a summary of all that it is given."""
    summarizer = talk.team.member("lead")
    asked = planned(talk.store, "c", summarizer, talk.team.agents, talk.progress)
    if asked is None:
        return
    request = talk.add(talk.team.member("kim"), "Please sum up. [SUM UP]")
    talk.addressees[request], talk.speakers[request] = (), "kim"
    prompts, _ = talk.prompts()
    turn = WaitingTurn(id="1", member="lead", message_id=f"msg-{request}", intent=2)
    given = prompts.for_summary(turn, agent_for(summarizer, talk.root), asked).output.prompt
    text = " ".join(match[0] for match in SECRET.finditer(given))
    number = talk.add(summarizer, f"SUMMARY {text}", extra=mark_of(asked))
    dropped = "kim" if chance.random() < 0.2 else ""
    written = Summary(
        number=number, member="lead", first=asked.first, last=asked.last, size=len(text), dropped_by=dropped
    )
    talk.progress = replace(talk.progress, summaries=(*talk.progress.summaries, written))


def texts_for(talk: Written, member: Member, current: int) -> Iterator[str]:
    """Yield all that a member is given or can look up in a turn about a message."""
    prompts, context = talk.prompts()
    hidden = [f"msg-{number}" for number in sorted(talk.hidden.get(member.name, ()))]
    message = talk.store.message("c", f"msg-{current}").message
    agent = agent_for(member, talk.root)
    prepared = prompts.for_message(message, agent, rivals=hidden, summaries=talk.progress.summaries)
    yield prepared.output.prompt
    history = VisibleHistory(
        *(talk.store, "c", context, member),
        last=current,
        hidden_ids=hidden,
        hidden_turns=(),
        summaries=talk.progress.summaries,
    )
    yield history.read(1, None, None)[0]
    yield from (history.message(one.number, 0)[0] for one in talk.progress.summaries)
    yield history.found("SUMMARY")[0]


@pytest.mark.parametrize("seed", range(4))
def test_no_summary_tells_what_a_member_may_not_see(seed: int, tmp_path: Path) -> None:
    chance, used = random.Random(seed), 0
    for number in range(CONVERSATIONS // 4):
        with SqliteStore(tmp_path / f"{number}.db") as store:
            talk = Written(team=new_team(chance), store=store, root=tmp_path, addressees={}, speakers={}, hidden={})
            store.create("c", team="t", team_file="", started_at=1)
            for _ in range(30):
                say(talk, chance)
                if chance.random() < 0.15:
                    sum_up(talk, chance)
            ordinary = sorted(talk.addressees)
            for member in talk.team.agents:
                for current in (ordinary[-1], chance.choice(ordinary)):
                    texts = list(texts_for(talk, member, current))
                    used += "(bullpen: Summary #" in texts[0]
                    told = {int(found) for text in texts for found in SECRET.findall(text)}
                    # The message that it answers is said to it, whoever asks for that.
                    leaked = {one for one in told - {current} if one > current or not talk.may_see(member, one)}
                    assert not leaked, (seed, number, member.name, current, leaked)
    assert used > 5, "summaries were used, or this shows nothing"
