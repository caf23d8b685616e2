"""The prompt inspector: what an agent was given in a turn, or would be given now, and how two prompts differ."""

import asyncio
from collections.abc import Iterable

from msgspec import Struct
from starlette.requests import Request
from starlette.responses import Response

from bullpen.errors import BullpenError
from bullpen.view.difference import difference
from bullpen.view.explanation import Explanation, explain_now, explain_referenced
from bullpen.view.listing import conversation_summary
from bullpen.view.steps import Step, recorded_steps, turn_record
from bullpen.view.stored_answers import answer_steps
from bullpen.view.turn_lookup import latest_turns
from bullpen.web.requests import hub_of, id_in
from bullpen.web.responses import page

MOST_CHOICES = 200
LINE_KINDS = {"+": "added", "-": "removed", "@": "place", " ": "same"}


class Line(Struct, frozen=True, kw_only=True):
    """A line of a difference."""

    kind: str
    text: str


async def prompt(request: Request) -> Response:
    """Show what one agent was given or would be given, compared with another one if requested."""
    key, other = request.path_params["view"], request.query_params.get("beside", "")
    left = await _explanation(request, key)
    right = await _explanation(request, other) if other else None
    compared = await asyncio.to_thread(difference, left, right) if right else None
    stored = await hub_of(request).read(conversation_summary, id_in(request))
    return page(
        "prompt.html",
        id=id_in(request),
        title=stored.title,
        left=left,
        right=right,
        left_key=key,
        right_key=other,
        difference=compared,
        system_lines=list(_lines(compared.system_diff)) if compared else [],
        prompt_lines=list(_lines(compared.prompt_diff)) if compared else [],
        choices=await _choices(request),
        steps=[] if left.turn is None or right else await _steps(request, left.turn.id),
    )


async def steps(request: Request) -> Response:
    """Show the steps of a turn that has ended, as a part of a page."""
    turn_id = request.path_params["turn"]
    return page("steps.html", steps=await _steps(request, turn_id), turn=turn_id)


async def _explanation(request: Request, key: str) -> Explanation:
    hub, conversation_id = hub_of(request), id_in(request)
    kind, _, name = key.partition("-")
    if kind == "turn":
        return await hub.read(explain_referenced, conversation_id, name)
    if kind == "next":
        return await explain_now((await hub.require(conversation_id)).conversation, name)
    raise BullpenError("There is no such prompt. An address ends in turn-3 or next-max.")


def _lines(diff: str) -> Iterable[Line]:
    # The first two lines name what is compared, which is already in the heading.
    for line in diff.split("\n")[2:]:
        yield Line(kind=LINE_KINDS.get(line[:1], "same"), text=line)


async def _choices(request: Request) -> list[tuple[str, str]]:
    """Return the prompts to choose from: key and name."""
    hub, conversation_id = hub_of(request), id_in(request)
    turns = await hub.read(latest_turns, conversation_id, MOST_CHOICES)
    opened = hub.get(conversation_id)
    agents = opened.conversation.team.agents if opened else ()
    return [
        *((f"next-{agent.name}", f"{agent.name}, if asked now") for agent in agents),
        *((f"turn-{turn_id}", f"turn {turn_id}, {member}") for turn_id, member in turns),
    ]


async def _steps(request: Request, turn_id: str) -> list[Step]:
    record = await hub_of(request).read(turn_record, id_in(request), turn_id)
    answers = (await hub_of(request).read(answer_steps, id_in(request), [turn_id])).get(turn_id, [])
    return [*([] if record is None else await asyncio.to_thread(recorded_steps, record)), *answers]
