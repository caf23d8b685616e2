"""What a person can type after a slash. Nearly everything here is on a key too."""

import re

from msgspec import Struct

COMMANDS = {
    "next": "ask members to answer the last message: /next max & sarah",
    "queue": "go to the queue: who is at work, who waits",
    "cancel": "stop everyone who is at work",
    "go": "go on after a pause",
    "retry": "do a turn again that ended without a reply",
    "skip": "go on without it",
    "hand": "let another member answer in its place: /hand sarah",
    "drop": "drop the waiting turns of a member, or all: /drop max",
    "task": "set what the team works on: /task build the login",
    "prompt": "show what a member would be given now: /prompt max",
    "explain": "show what an agent was given: /explain 14",
    "export": "write the conversation to a file, .md, .html or .json: /export talk.md",
    "search": "find what was said: /search cookie",
    "theme": "switch between dark and light",
    "help": "show every key",
    "quit": "leave",
}

_COMMAND = re.compile(r"/([a-z]+)(?:\s+(.*))?", re.DOTALL)


class Command(Struct, frozen=True):
    """A command as it was typed."""

    name: str
    rest: str


def read_command(text: str) -> Command | None:
    """Return the command that a text is, or None if it is something to say: "/etc/hosts is gone" is."""
    found = _COMMAND.fullmatch(text.rstrip())
    return None if found is None else Command(found[1], (found[2] or "").strip())
