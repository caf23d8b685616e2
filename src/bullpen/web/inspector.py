"""The prompt inspector: what an agent was given, or would be now; its parts, what is missing, how two differ."""

import asyncio
from collections.abc import Iterable
from difflib import unified_diff

from msgspec import Struct
from starlette.requests import Request
from starlette.responses import Response

from bullpen.context.prompt import AssemblerOutput
from bullpen.errors import BullpenError
from bullpen.store.base import Store, Turn
from bullpen.view.explanation import Explanation, NotOffered, SeenMessage, explain
from bullpen.web.markdown import MOST_HIGHLIGHTED
from bullpen.web.requests import hub_of, id_in
from bullpen.web.responses import page
from bullpen.web.steps import Step, recorded_steps

MOST_DIFF_LINES = 5_000
MOST_CHOICES = 200


class Section(Struct, frozen=True, kw_only=True):
    """A part of a prompt."""

    name: str
    bytes: int


class View(Struct, frozen=True, kw_only=True):
    """What one agent sees: in a turn that was, or if it were asked now."""

    key: str
    """turn-3, or next-max."""
    title: str
    member: str
    sections: tuple[Section, ...] = ()
    max_bytes: int = 0
    messages: tuple[SeenMessage, ...] = ()
    not_offered: tuple[NotOffered, ...] = ()
    remarks: tuple[str, ...] = ()
    system: str = ""
    prompt: str = ""
    command: tuple[str, ...] = ()
    turn: Turn | None = None
    seconds: float | None = None

    @property
    def total_bytes(self) -> int:
        """All that is sent."""
        return sum(section.bytes for section in self.sections)


class Line(Struct, frozen=True, kw_only=True):
    """A line of a difference."""

    kind: str
    text: str


class Difference(Struct, frozen=True, kw_only=True):
    """What two views do not share."""

    sections: tuple[tuple[str, int, int], ...]
    only_left: tuple[SeenMessage, ...]
    only_right: tuple[SeenMessage, ...]
    system: tuple[Line, ...]
    prompt: tuple[Line, ...]


async def prompt(request: Request) -> Response:
    """Show what one agent saw or would see, beside another one if that is asked for."""
    key, other = request.path_params["view"], request.query_params.get("beside", "")
    left = await _view(request, key)
    right = await _view(request, other) if other else None
    choices = await _choices(request)
    steps = await _steps(request, left.turn) if right is None else []
    return page(
        "prompt.html",
        id=id_in(request),
        left=left,
        right=right,
        difference=await asyncio.to_thread(_difference, left, right) if right else None,
        choices=choices,
        steps=steps,
        highlight=len(left.prompt) <= MOST_HIGHLIGHTED,
    )


async def steps(request: Request) -> Response:
    """Show what an agent did in a turn that has ended, as a part of a page."""
    turn = await hub_of(request).ask(lambda store: store.turn(id_in(request), request.path_params["turn"]))
    return page("steps.html", steps=await _steps(request, turn), turn=turn.id)


async def _view(request: Request, key: str) -> View:
    hub, conversation_id = hub_of(request), id_in(request)
    kind, _, name = key.partition("-")
    if kind == "turn":
        return _of_turn(await hub.ask(lambda store: explain(store, conversation_id, name)))
    if kind == "next":
        room = await hub.need(conversation_id)
        given = await room.conversation.preview(name)
        messages = await hub.ask(lambda store: tuple(_offered(store, conversation_id, given)))
        return _of_preview(key, name, given, messages)
    raise BullpenError("A view is called turn-3 or next-max.")


def _of_turn(explained: Explanation) -> View:
    turn = explained.turn
    return View(
        key=f"turn-{turn.id}",
        title=f"Turn {turn.id}",
        member=turn.member,
        sections=_sections(explained.section_bytes),
        max_bytes=explained.max_bytes,
        messages=(*explained.context, explained.answers),
        not_offered=explained.not_offered,
        remarks=explained.remarks,
        system=explained.system or "",
        prompt=explained.prompt or "",
        command=explained.command,
        turn=turn,
        seconds=explained.seconds,
    )


def _of_preview(key: str, member: str, given: AssemblerOutput, messages: tuple[SeenMessage, ...]) -> View:
    return View(
        key=key,
        title="If asked now",
        member=member,
        sections=_sections(given.report.section_bytes),
        max_bytes=given.report.max_bytes,
        messages=messages,
        remarks=given.report.remarks,
        system=given.system_flag or "",
        prompt=given.prompt,
    )


def _offered(store: Store, conversation_id: str, given: AssemblerOutput) -> Iterable[SeenMessage]:
    report = given.report
    newest = store.messages(conversation_id, limit=1)
    ids = [*report.context_ids, *(stored.message.id for stored in newest)]
    for place, message_id in enumerate(dict.fromkeys(ids)):
        stored = store.message(conversation_id, message_id)
        words = " ".join(stored.message.content[:240].split())
        yield SeenMessage(
            sequence=stored.sequence,
            id=message_id,
            speaker=stored.message.speaker.role_name,
            first_words=words if len(words) <= 60 else f"{words[:59]}…",
            said_bytes=len(stored.message.content.encode()),
            fate="dropped" if place < report.dropped_messages else "kept",
            why=f"does not fit into {report.max_bytes:,} bytes" if place < report.dropped_messages else "",
        )


def _sections(sizes: dict[str, int]) -> tuple[Section, ...]:
    return tuple(Section(name=name.replace("_", " "), bytes=size) for name, size in sizes.items() if size)


def _difference(left: View, right: View) -> Difference:
    sizes_left = {section.name: section.bytes for section in left.sections}
    sizes_right = {section.name: section.bytes for section in right.sections}
    seen_left = {seen.id for seen in left.messages if seen.fate != "dropped"}
    seen_right = {seen.id for seen in right.messages if seen.fate != "dropped"}
    return Difference(
        sections=tuple(
            (name, sizes_left.get(name, 0), sizes_right.get(name, 0)) for name in {**sizes_left, **sizes_right}
        ),
        only_left=tuple(seen for seen in left.messages if seen.id in seen_left - seen_right),
        only_right=tuple(seen for seen in right.messages if seen.id in seen_right - seen_left),
        system=tuple(_lines(left.system, right.system)),
        prompt=tuple(_lines(left.prompt, right.prompt)),
    )


def _lines(before: str, after: str) -> Iterable[Line]:
    kinds = {"+": "added", "-": "removed", "@": "place", " ": "same"}
    found = list(unified_diff(before.split("\n")[:MOST_DIFF_LINES], after.split("\n")[:MOST_DIFF_LINES], lineterm=""))
    # The first two lines name files, which these are not.
    for line in found[2:]:
        yield Line(kind=kinds.get(line[:1], "same"), text=line)


async def _choices(request: Request) -> list[tuple[str, str]]:
    """Return the views there are to choose from: key and name."""
    hub, conversation_id = hub_of(request), id_in(request)
    turns = await hub.ask(lambda store: store.turns(conversation_id))
    room = hub.get(conversation_id)
    agents = room.conversation.team.agents if room else ()
    return [
        *((f"next-{agent.name}", f"{agent.name}, if asked now") for agent in agents),
        *(
            (f"turn-{turn.id}", f"turn {turn.id}, {turn.member}")
            for turn in reversed(turns[-MOST_CHOICES:])
            if turn.started_at
        ),
    ]


async def _steps(request: Request, turn: Turn | None) -> list[Step]:
    if turn is None or turn.ended_at is None:
        return []
    record = await hub_of(request).ask(lambda store: store.record(id_in(request), turn.id))
    return [] if record is None else await asyncio.to_thread(recorded_steps, record)
