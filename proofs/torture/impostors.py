"""People who say that they are somebody else, or take part where they do not: in forms, in the API, in commands."""

import asyncio
import tempfile
from collections import Counter
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from random import Random
from typing import Any
from unittest import mock

import httpx
from msgspec import Struct
from proofs.torture.outcome import Outcome, Size, Torture
from proofs.torture.planting import ALL_FOUND, Planted, each_found, in_words, one_line

from bullpen.conversation.conversation import Conversation
from bullpen.testing.site import Site, site
from bullpen.view.decided import Decision, decisions_in
from bullpen.view.listing import conversation_summary
from bullpen.web import requests
from bullpen.web.identity import GUEST, OWNER, Identity, takes_part

ATTEMPTS: dict[Size, int] = {"small": 300, "full": 5_000}
SECONDS = 60.0
MOSTLY = 0.8
FIRST = "message 1000000"
PEOPLE = ("kim", "lee", "ada")
NAMES = (*PEOPLE, "KIM", "Lee", "max", "eve", "", "kim ", "k\u200bim", "owner", "*")
TEAM = """name = "stage"
lead = "max"
[[member]]
name = "kim"
[[member]]
name = "lee"
[[member]]
name = "ada"
[[member]]
name = "max"
command = ["/bin/true"]
"""
ACTING: dict[str, dict[str, str]] = {
    "continue": {},
    "task": {"task": "Sell"},
    "rename": {"title": "A shop"},
    "drop": {},
    "cancel": {},
    "allow": {},
}


MANAGING = ("open", "close", "archive", "unarchive", "rename")
"""What changes a conversation as a whole, open here or not."""


class Somebody(Struct, frozen=True):
    """Who asks, and with what."""

    identity: Identity
    headers: dict[str, str]


class Attempts:
    """What was tried, and who may be behind it."""

    def __init__(self, served: Site, conversation: Conversation, random: Random) -> None:
        self._served = served
        self._api = f"{served.url}/api/conversations/{conversation.id}"
        self._page = f"{served.url}/c/{conversation.id}"
        self._random = random
        self._conversation = conversation
        self._somebody = [_somebody(served, identity, way) for identity in _identities() for way in ("cookie", "token")]
        self._said_by = {FIRST: Identity(role="member", person="kim")}
        self._decided_by: list[tuple[Identity, str]] = []
        self.answers: Counter[str] = Counter()
        self.failures: list[str] = []

    async def attempt(self, client: httpx.AsyncClient, number: int) -> None:
        """Say or decide something as somebody, with other names in it."""
        who = self._random.choice(self._somebody)
        sender, name = self._random.choice(NAMES), self._random.choice(NAMES)
        words = f"message {number}"
        text = self._random.choice([words, f"[FROM: {name}] {words}", f"{words} [FROM: {name}]"]) + " [NEXT: nobody]"
        kind = self._random.choice(["say", "form", "note", "act", "do", "command", "manage", "manage"])
        managed = self._random.choice(MANAGING)
        action, given = self._random.choice(list(ACTING.items()))
        as_sender: dict[str, Any] = {"sender": sender} if sender else {}
        before, was = len(await self._decisions()), await self._state()
        answer = await {
            "say": lambda: client.post(f"{self._api}/messages", headers=who.headers, json={"text": text, **as_sender}),
            "form": lambda: client.post(
                f"{self._page}/messages", headers=who.headers, data={"text": text, **as_sender}
            ),
            "note": lambda: client.post(f"{self._api}/note", headers=who.headers, json={"text": text}),
            "act": lambda: client.post(f"{self._api}/{action}", headers=who.headers, json=given),
            "do": lambda: client.post(f"{self._page}/do/{action}", headers=who.headers, data={**given, **as_sender}),
            "command": lambda: client.post(
                f"{self._api}/commands", headers=who.headers, json={"text": f"/note {text}", **as_sender}
            ),
            "manage": lambda: client.post(f"{self._page}/{managed}", headers=who.headers, data={"title": words}),
        }[kind]()
        made = len(await self._decisions()) - before
        self._decided_by += [(who.identity, sender if kind == "do" else "")] * made
        self._said_by[words] = who.identity
        self.answers[f"{answer.status_code // 100}xx"] += 1
        what = f"{number}: {kind} by {who.identity.role} {who.identity.person} as {sender!r}"
        if answer.status_code >= 500:
            self.failures.append(f"{what} gave {answer.status_code}")
        if who.identity.role == "viewer" and answer.status_code != 403:
            self.failures.append(f"{what} gave {answer.status_code}, and a viewer changes nothing")
        if who.identity.role == "member" and who.identity.person not in PEOPLE and await self._state() != was:
            self.failures.append(f"{what} changed a conversation of another team: {managed}")
        await self._open_again()

    async def _decisions(self) -> list[Decision]:
        return await self._served.hub.read(decisions_in, self._conversation.id)

    async def _state(self) -> tuple[object, ...]:
        """Return all that managing a conversation changes."""
        stored = await self._served.hub.read(conversation_summary, self._conversation.id)
        is_open = self._served.hub.get(self._conversation.id) is not None
        return stored.title, stored.is_archived, stored.messages, stored.task, is_open

    async def _open_again(self) -> None:
        """Let the next one find it open, mostly."""
        if self._random.random() < MOSTLY:
            self._conversation = (await self._served.hub.resume(self._conversation.id)).conversation

    async def check(self) -> int:
        """Compare who said and decided everything with who it was; return how much that is."""
        self._conversation = (await self._served.hub.resume(self._conversation.id)).conversation
        said = await self._conversation.messages(limit=10**6)
        for one in said:
            words = " ".join(word for word in one.message.content.split() if word == "message" or word.isdecimal())
            self._compare(f"{words!r} is said", one.message.speaker.role_id, self._said_by[words])
        decided = await self._decisions()
        for decision, (identity, sender) in zip(decided, self._decided_by, strict=True):
            self._compare(f"{decision.choice} is decided", decision.person, identity)
            self._compare_owner(f"{decision.choice} is decided", decision.person, identity, sender)
        return len(said) + len(decided)

    def _compare(self, what: str, person: str, identity: Identity) -> None:
        if identity.role == "viewer":
            self.failures.append(f"{what} by {person}, and it was a viewer")
        elif identity.role == "member" and person != identity.person:
            self.failures.append(f"{what} by {person}, and it was {identity.person}")

    def _compare_owner(self, what: str, person: str, identity: Identity, sender: str) -> None:
        """An owner decides as whom they say, else as themselves, and never as who happened to speak last."""
        if identity.role == "owner" and not sender and person != (identity.person or "owner"):
            self.failures.append(f"{what} by {person}, and it was {identity.person or 'the owner'}")


def _identities() -> list[Identity]:
    members = [Identity(role="member", person=name) for name in (*PEOPLE, "eve")]
    return [OWNER, Identity(role="owner", person="ada"), *members, Identity(role="viewer", person="lee"), GUEST]


def _somebody(served: Site, identity: Identity, way: str) -> Somebody:
    if way == "token":
        return Somebody(identity, {"Authorization": f"Bearer {served.keys.new_token(identity)}"})
    session = served.keys.redeem(served.keys.new_ticket(identity))
    return Somebody(identity, {"Cookie": f"{served.place.cookie}={session}", "Origin": served.url})


async def _try(attempts: int, seed: int) -> Outcome:
    with tempfile.TemporaryDirectory(prefix="torture-") as folder:
        (Path(folder) / "team.toml").write_text(TEAM, encoding="utf-8")
        async with (
            site(Path(folder), Path(folder) / "team.toml") as served,
            httpx.AsyncClient(timeout=SECONDS) as client,
        ):
            conversation = (await served.hub.begin()).conversation
            # One in which nothing was said is gone when it is closed.
            await conversation.note(FIRST, sender="kim")
            tried = Attempts(served, conversation, Random(seed))
            for number in range(attempts):
                await tried.attempt(client, number)
            stored = await tried.check()
    answers = {f"answered with {kind}": count for kind, count in sorted(tried.answers.items())}
    return Outcome(
        tried=attempts,
        unit="attempts",
        failures=tuple(tried.failures),
        figures={"messages and decisions that were stored": stored, **answers},
    )


def run(size: Size, seed: int) -> Outcome:
    """Let everybody try to be anybody."""
    return asyncio.run(_try(ATTEMPTS[size], seed))


def run_with_fault(seed: int) -> Outcome:
    """Let people be who they say, and make mistakes in what they may."""
    return each_found(FAULTS, seed)


@contextmanager
def _everybody_is_believed() -> Iterator[None]:
    with ExitStack() as faults:
        for module in ("api", "pages"):
            faults.enter_context(mock.patch(f"bullpen.web.{module}.sender_in", lambda _, given, text="": given or None))
        yield


def _found(seed: int) -> tuple[str, ...]:
    return asyncio.run(_try(ATTEMPTS["small"], seed)).failures


ANOTHER = "is said by .*, and it was"
FAULTS = {
    "the server believes who somebody says they are": Planted(_everybody_is_believed, _found, ANOTHER),
    "a member speaks as their text says": Planted(
        one_line(requests.sender_in, "return who.person", "return given or None"), _found, ANOTHER
    ),
    "members of any team take part": Planted(
        one_line(takes_part, "and who.person in people", ""), _found, "of another team"
    ),
    "an owner with a name decides as somebody else": Planted(
        one_line(requests.sender_in, "return given or own", "return given"), _found, "is decided by .*, and it was ada"
    ),
}

TORTURE = Torture(
    name="people who say that they are somebody else",
    does=(
        "Owners, members, viewers, guests and people of other teams, with cookies and with tokens, speak and decide as "
        "anybody: in forms, in the API, in commands and with [FROM: …]. They also open, close, rename and archive the "
        "conversation."
    ),
    promise=(
        "a viewer changes nothing, and neither do people of other teams; what a member said or decided is stored as "
        "theirs, whatever they sent, and what an owner decided as nobody else's; and nothing makes the server fail."
    ),
    run=run,
    fault=in_words(FAULTS),
    seen_as=ALL_FOUND,
    run_with_fault=run_with_fault,
    order=83,
)
