"""Asking agents for their opinions on a change: each is printed when it arrives; a veto stops the commit."""

import argparse
import asyncio
import contextlib
from collections.abc import Iterable
from pathlib import Path
from textwrap import indent

from bullpen.app import open_team
from bullpen.cli.run import say_and_wait
from bullpen.cli.signals import Interruptions
from bullpen.cli.staged import Staged
from bullpen.cli.typed_commands import to_type
from bullpen.cli.viewer import following
from bullpen.clock import milliseconds
from bullpen.conversation.approvals import Unattended
from bullpen.conversation.conversation import Conversation
from bullpen.conversation.events import ConversationEvent, Said, TurnEnded
from bullpen.database import open_database
from bullpen.errors import BullpenError
from bullpen.team.file import LoadedTeam
from bullpen.text.names import listed
from bullpen.text.numbers import duration
from bullpen.text.safe import printable
from bullpen.view.listing import archive
from bullpen.view.opinions import Opinion, opinion

SENTENCES = {"approve": "approves.", "changes": "asks for changes:", None: "gave no clear verdict:"}


class Opinions:
    """What everybody who was asked has said so far: the last word of each counts."""

    def __init__(self, names: Iterable[str]) -> None:
        self._asked: dict[str, Opinion | None] = dict.fromkeys(names)

    def tell(self, event: ConversationEvent) -> None:
        """Remember what an event says, and print it."""
        match event:
            case Said(message=message) if message.speaker.type == "ai":
                said = self._asked[message.speaker.role_id] = opinion(message)
                _print(f"{said.member} {SENTENCES[said.verdict]}\n{indent(said.text, '  ')}")
            case TurnEnded(member=member, failure=failure) if failure is not None:
                _print(f"{member} could not answer: {failure.explanation}")

    @property
    def vetoes(self) -> list[str]:
        """Who asks for changes."""
        return [name for name, said in self._asked.items() if said is not None and said.verdict == "changes"]

    @property
    def missing(self) -> list[str]:
        """Who has neither approved nor asked for changes."""
        return [name for name, said in self._asked.items() if said is None or said.verdict is None]

    def stops(self, *, is_strict: bool) -> bool:
        """Return whether the commit is stopped."""
        return bool(self.vetoes) or (is_strict and bool(self.missing))


async def ask_for_opinions(loaded: LoadedTeam, change: Staged, options: argparse.Namespace, timeout: float) -> int:
    """Ask those who lead the team, print what they say, and return the exit code."""
    interruptions, opinions = Interruptions(), Opinions(loaded.team.first_to_answer)
    sender = loaded.team.people[0].name
    asking = argparse.Namespace(sender=sender, timeout=timeout)
    names = listed(loaded.team.first_to_answer)
    _print(f"Asking {names} about {change.summary}, for at most {duration(timeout)}. {change.note}".rstrip())
    with interruptions.taken():
        async with open_team(loaded, db=options.db) as conversation:
            conversation.approvals.unattended = Unattended(allow=())
            async with following(conversation, opinions.tell) as follower:
                ending = await say_and_wait(conversation, follower, change.message, asking, interruptions)
            await _leave_nothing_open(conversation)
            identity = conversation.id
    await asyncio.to_thread(_archive, identity, options.db)
    if interruptions.exit_code is not None:
        return interruptions.exit_code
    if ending == "timeout":
        _print(f"After {duration(timeout)}, nobody is waited for any more.")
    _print(_end(opinions, is_strict=options.strict))
    _print(f"All of it: {to_type(f'sessions show {identity}', options.db)}")
    return 1 if opinions.stops(is_strict=options.strict) else 0


async def _leave_nothing_open(conversation: Conversation) -> None:
    """Decide about turns that failed: nobody will come back to this conversation."""
    with contextlib.suppress(BullpenError):
        while conversation.undecided:
            await conversation.skip()


def _archive(identity: str, db: Path | None) -> None:
    """Keep it out of lists: after each commit, the latest conversation would be this one."""
    with contextlib.suppress(BullpenError), open_database(db) as database:
        archive(database, identity, at=milliseconds())


def _end(opinions: Opinions, *, is_strict: bool) -> str:
    missing = f"{listed(opinions.missing)} gave no verdict" if opinions.missing else ""
    if opinions.vetoes:
        return f"The commit is stopped: {listed(opinions.vetoes)} asked for changes. Anyway: git commit --no-verify"
    if opinions.stops(is_strict=is_strict):
        return f"The commit is stopped: {missing} (--strict). Anyway: git commit --no-verify"
    return f"Nobody asks for changes; {missing}." if missing else "Everybody approves."


def _print(text: str) -> None:
    print(printable(text), flush=True)
