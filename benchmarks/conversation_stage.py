"""What the figures about conversations share: a team in a folder, and conversations of any length."""

import os
from collections.abc import Iterator
from itertools import cycle, islice
from pathlib import Path

from msgspec.structs import replace

from benchmarks.corpus import Write, drafts
from bullpen.app import new_conversation_id
from bullpen.messages import ConversationMessage, Routing, Speaker
from bullpen.store.base import StateChange
from bullpen.store.sqlite import SqliteStore
from bullpen.team.file import LoadedTeam, load_team

WINDOW = 50
MARKER = "\n\n[NEXT:"
KIM = Speaker(role_id="kim", role_name="kim", type="human")
TEAM = """
hand_over_note = false
[limits]
turns_per_message = 1000
back_and_forth = 1000
identical_replies = 1000
[[member]]
name = "kim"
[[member]]
name = "lee"
"""
AGENT = """
[[member]]
name = "{name}"
command = ["/bin/sh", "-c", '''{script}''']
"""


def team_in(folder: Path, **scripts: str) -> LoadedTeam:
    """Return a team of two people, and of agents that run shell scripts."""
    agents = scripts or {"max": "cat > /dev/null; echo Done."}
    file = folder / "team.toml"
    file.write_text(TEAM + "".join(AGENT.format(name=name, script=script) for name, script in agents.items()))
    return load_team(file)


def texts_for_lee(count: int, write: Write | None = None) -> list[str]:
    """Return what kim says to lee: the texts of the corpus, without asking any agent."""
    return [f"{draft.content.partition(MARKER)[0]}{MARKER} lee]" for draft in drafts(count, write)]


def conversation_in(team: LoadedTeam, db: Path, length: int) -> str:
    """Return the id of a conversation of this length; the last messages are the same for every length."""
    conversation_id = new_conversation_id()
    with SqliteStore(db) as store:
        # Not by opening it: a conversation without a message is not kept.
        store.create(conversation_id, team=team.team.name, team_file=team.text, team_path=str(team.path), started_at=1)
        # Only we read this: without waiting for the disk, it takes seconds instead of minutes.
        connection = store._database._connection
        assert connection is not None
        connection.execute("PRAGMA synchronous = OFF")
        for message in _messages(length):
            store.append(conversation_id, message)
        # As after `say`; otherwise, opening looks for the highest number in all ids.
        store.update(conversation_id, at=length, change=StateChange(progress={"message_number": length}))
    # Otherwise the rest would be written while we measure.
    os.sync()
    return conversation_id


def _messages(length: int) -> Iterator[ConversationMessage]:
    texts = texts_for_lee(min(length, 1_000))
    message = ConversationMessage(id="", content="", speaker=KIM, timestamp=1, routing=Routing())
    for number, text in enumerate(islice(cycle(texts), length)):
        yield replace(message, id=f"msg-{number + 1}", content=text, timestamp=number)
