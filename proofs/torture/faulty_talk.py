"""The process that talk_faults.py lets fail: a person, an agent, and a disk that breaks and is mended."""

import asyncio
import logging
import shutil
import sys
from pathlib import Path
from typing import Any

from proofs.torture.forks import serve
from proofs.torture.shim import Shim

from bullpen import open_team
from bullpen.conversation import turn_loop
from bullpen.conversation.conversation import Conversation
from bullpen.conversation.events import Paused, Trouble, Undecided
from bullpen.conversation.turn_loop import TurnLoop
from bullpen.errors import BullpenError, StoreError
from bullpen.store.sqlite import SqliteStore

TEXTS = 24
LASTING = 1_000_000
TEAM = """
lead = "max"
hand_over_note = false
[[member]]
name = "kim"
type = "human"
[[member]]
name = "max"
command = ["/bin/sh", "-c", 'cat > /dev/null; echo ran >> {runs}; echo an answer']
"""


class Talk:
    """A person who says one thing after the other, and mends the disk when told that it is broken."""

    patience_seconds = 20.0

    def __init__(self, folder: Path, shim: Shim) -> None:
        self.db = folder / "root" / "new" / "conversations.db"
        self.runs = folder / "runs"
        self.team = folder / "team.toml"
        self.shim = shim
        self.errors: list[str] = []
        self.said: list[str] = []
        self.conversation_id = ""

    async def live(self) -> None:
        """Talk until the fault has come and gone."""
        self.team.write_text(TEAM.format(runs=self.runs), encoding="utf-8")
        self.runs.write_text("")
        try:
            await self.open()
        except BullpenError as error:
            self.mend(str(error))
            await self.open()

    async def open(self) -> None:
        async with open_team(self.team, db=self.db, resume=self.conversation_id or None) as conversation:
            self.conversation_id = conversation.id
            watcher = asyncio.create_task(self.watch(conversation))
            try:
                await self.talk(conversation)
            finally:
                # Before closing, which stores that nobody owns the conversation any more.
                self.shim.heal()
                watcher.cancel()

    async def talk(self, conversation: Conversation) -> None:
        after_the_fault = 0
        while len(self.said) < TEXTS and after_the_fault < 2:
            after_the_fault += bool(self.shim.failed_call)
            text = f"text {len(self.said)}"
            try:
                await conversation.say(text, message_id=text)
            except StoreError as error:
                self.mend(str(error))
                await conversation.say(text, message_id=text)
            self.said.append(text)
            async with asyncio.timeout(self.patience_seconds):
                await self.until_answered(conversation)

    async def until_answered(self, conversation: Conversation) -> None:
        """Wait for the agent; what the disk has stopped goes on when a person says so."""
        await conversation.until_quiet()
        if conversation.paused is not None:
            self.mend(conversation.paused)
            await conversation.continue_turns()
            await conversation.until_quiet()

    async def watch(self, conversation: Conversation) -> None:
        """Mend the disk when the conversation says that it cannot store what an agent said."""
        async for news in conversation.watch():
            if isinstance(news, Trouble | Paused | Undecided):
                self.mend(news.text)

    def mend(self, error: str) -> None:
        self.errors.append(error)
        self.shim.heal()

    def broken_promise(self) -> str:
        """Return what is wrong in the end, or nothing."""
        with SqliteStore(self.db) as store:
            stored = [one.message for one in store.messages(self.conversation_id)]
            states = [turn.state for turn in store.turns(self.conversation_id)]
            findings = store.fsck()
        by_kim = [message.content for message in stored if message.speaker.role_id == "kim"]
        by_max = [message.content for message in stored if message.speaker.role_id == "max"]
        if findings:
            return str(findings[0])
        if by_kim != self.said:
            return f"kim said {self.said}, and stored is {by_kim}"
        if by_max != ["an answer"] * len(self.said):
            return f"{len(by_max)} answers to {len(self.said)} messages"
        if len(self.runs.read_text().splitlines()) != len(by_max):
            return "an answer that had come was asked for again"
        return "" if set(states) == {"done"} else f"turns are {states}"


def work(folder: Path, shim: Shim, *, error: int, at: int) -> dict[str, Any]:
    """Talk with a fault at one call."""
    # Real ones are for disks that people mend.
    turn_loop.STORE_RETRY_SECONDS = (0.01, 0.01, 0.01, 0.01)
    logging.disable()
    root = folder / "root"
    shutil.rmtree(root, ignore_errors=True)
    root.mkdir()
    shim.watch(root)
    talk = Talk(folder, shim)
    shim.fail(error, at=at, count=LASTING)
    asyncio.run(talk.live())
    shim.heal()
    return {"failure": talk.broken_promise(), "errors": talk.errors, "call": shim.failed_call, "said": len(talk.said)}


def plant(fault: str) -> None:
    """Break the conversation in this process: what an agent said is dropped if it cannot be stored at once."""
    if fault:

        async def once(self: TurnLoop, work: Any) -> None:
            try:
                await self._journal.alone(work)
            except StoreError:
                return

        setattr(TurnLoop, "_stored", once)  # noqa: B010
        Talk.patience_seconds = 2.0


if __name__ == "__main__":
    folder_, plant_ = sys.argv[1:]
    plant(plant_)
    shim_ = Shim()
    serve(lambda **request: work(Path(folder_), shim_, **request))
