"""Two repositories in which agents do what a script says: for several changes as one."""

import asyncio
from pathlib import Path

from tests.files.stage import repository

from bullpen.app import open_team
from bullpen.conversation.conversation import Conversation
from bullpen.file_changes import ChangeRecord
from bullpen.store.sqlite import SqliteStore
from bullpen.view.change_lookup import all_changes
from bullpen.view.change_reading import change_part
from bullpen.view.changes import Changes, changes_of
from bullpen.view.combined_changes import kept_beside

MEMBER = """
[[member]]
name = "{}"
command = ["sh", "-c", "cat > /dev/null; sh '{}'; echo Done."]
permissions = "edit"
cwd = "{}"
"""
FILES = {"a.txt": b"one\ntwo\nthree\n", "b.txt": b"".join(b"line %d\n" % number for number in range(20))}


class Shop:
    """Two repositories in which agents do what a script says, and the database beside them."""

    def __init__(self, path: Path) -> None:
        self.db, self.team, self.script = path / "conversations.db", path / "team.toml", path / "next.sh"
        self.work, self.other = repository(path / "work", FILES), repository(path / "other", FILES)
        folders = {"ann": "work", "bob": "work", "olga": "other"}
        members = "".join(MEMBER.format(name, self.script, folder) for name, folder in folders.items())
        self.team.write_text(f'[[member]]\nname = "kim"\n{members}', encoding="utf-8")
        self.id = ""

    def play(self, *steps: tuple[str, str]) -> None:
        """Let members, or "people", run commands in their folders, one after the other; "undo" takes a turn back."""

        async def story() -> None:
            async with open_team(self.team, db=self.db, resume=self.id or None) as conversation:
                self.id = conversation.id
                for who, what in steps:
                    await self._step(conversation, who, what)

        asyncio.run(story())

    async def _step(self, conversation: Conversation, who: str, what: str) -> None:
        if who == "people":
            await asyncio.to_thread(lambda: (self.work / what).write_text("by hand\n", encoding="utf-8"))
        elif who == "undo":
            await conversation.undo(what)
        else:
            self.script.write_text(what, encoding="utf-8")
            await conversation.say(f"[NEXT: {who}] Go.")
            await conversation.until_quiet()

    def read(self) -> tuple[list[ChangeRecord], Changes]:
        with SqliteStore(self.db) as store:
            records = all_changes(store, self.id)
            return records, changes_of(records, kept_beside(store))

    def part(self, key: str) -> ChangeRecord:
        with SqliteStore(self.db) as store:
            return change_part(store, self.id, key)
