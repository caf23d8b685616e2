"""Figure: how long an agent's call of a tool takes in a long conversation, in the process that has it open."""

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from time import process_time
from typing import Any

from benchmarks.agents_stage import own_folder
from benchmarks.corpus import AGENTS, drafts, recorded, recurring
from benchmarks.measure import Run, medians
from benchmarks.report import Figure, code, duration, times
from bullpen.approvals import Answer
from bullpen.context.manager import ContextManager
from bullpen.conversation.turn_tools import Around, TurnTools
from bullpen.conversation.visible_history import VisibleHistory
from bullpen.routing.router import Router
from bullpen.store.sqlite import SqliteStore
from bullpen.team.team import Member, Team, Visibility
from bullpen.tools.calls import Call
from bullpen.turn_events import ApprovalAsked

GOAL_SECONDS = 0.005
LONG, SHORT, QUICK_LONG = 100_000, 1_000, 10_000
DIFFERENT, PART = 2_000, 5_000
ROUNDS, QUICK_ROUNDS = 30, 5
ID = "calm-oak-000001"
READ = "read_history"
"""The tool that the goal is about."""


def measure(*, quick: bool) -> Figure:
    """Make the same calls in a long conversation and in a short one."""
    long = QUICK_LONG if quick else LONG
    with own_folder() as folder, _calls(folder, SHORT) as few, _calls(folder, long) as many:
        runs = {(name, count): run for count, calls in ((SHORT, few), (long, many)) for name, run in calls.items()}
        taken = medians(runs, rounds=QUICK_ROUNDS if quick else ROUNDS, clock=process_time)
    slowest = max(time for (name, count), time in taken.items() if count == long and name.startswith(READ))
    growth = max(taken[name, long] / taken[name, SHORT] for name in few if name.startswith(READ))
    return Figure(
        title="Looking things up in a long conversation",
        goal=f"a call of {code(READ)} over {long:,} messages takes at most {duration(GOAL_SECONDS)}",
        met=slowest <= GOAL_SECONDS,
        measured=f"{duration(slowest)} at most; {times(growth)} times that of {SHORT:,} messages",
        columns=("call", f"{SHORT:,} messages", f"{long:,} messages", "ratio"),
        rows=[
            (
                code(name),
                *(duration(taken[name, count]) for count in (SHORT, long)),
                times(taken[name, long] / taken[name, SHORT]),
            )
            for name in few
        ],
        meaning="Processor time of the call where the conversation is, from its arguments to its text. What the CLI "
        "and its MCP server add does not depend on the conversation.",
    )


@contextmanager
def _calls(folder: Path, count: int) -> Iterator[dict[str, Run]]:
    """Yield calls in a conversation with so many messages, each as something to run."""
    with SqliteStore(folder / f"{count}.db") as store, asyncio.Runner() as runner:
        store.create(ID, team="t", team_file="", started_at=0)
        context = ContextManager()
        some = list(drafts(DIFFERENT))
        messages = [recorded(draft, number) for number, draft in enumerate(recurring(some, count), start=1)]
        for first in range(0, count, PART):
            store.extend(ID, messages[first : first + PART])
        for message in messages:
            context.record(message)
        middle = count // 2
        asked: dict[str, tuple[str, dict[str, Any]]] = {
            f"{READ}, the newest": (READ, {}),
            f"{READ}, a range": (READ, {"first": middle, "last": middle + 50}),
            f"{READ}, a large range": (READ, {"first": 1, "last": count}),
            f"{READ}, around one": (READ, {"around": middle}),
            "read_message": ("read_message", {"number": middle}),
            "search, a rare word": ("search", {"query": "unheardof"}),
        }
        yield {
            f"{name}{' (sees what is addressed to it)' if visibility == 'addressed' else ''}": partial(
                _called, runner, store, context, visibility, count, tool, arguments
            )
            for visibility in ("all", "addressed")
            for name, (tool, arguments) in asked.items()
        }


def _called(
    runner: asyncio.Runner,
    store: SqliteStore,
    context: ContextManager,
    visibility: Visibility,
    last: int,
    tool: str,
    arguments: dict[str, Any],
) -> None:
    member = Member(name=AGENTS[0].role_id, type="ai", agent="claude", visibility=visibility)
    history = VisibleHistory(store, ID, context, member, last=last, hidden_ids=(), hidden_turns=())
    team = Team(name="t", members=(Member(name="kai", type="human"), member), lead=member.name)
    tools = TurnTools(member, Router(team), _around(history))
    answer = runner.run(tools.answer(Call(id=1, tool=tool, arguments=arguments)))
    if answer.is_error:
        raise RuntimeError(answer.text)


def _around(visible: VisibleHistory) -> Around:
    async def history() -> VisibleHistory:
        return visible

    async def read(method: Any, *values: object) -> tuple[str, str]:
        text, what = method(*values)
        return str(text), str(what)

    async def nobody(_: ApprovalAsked) -> Answer:
        return Answer(verdict="no")

    async def nothing(_: str) -> None:
        return None

    return Around(history=history, read=read, team=str, ask=nobody, note=nothing, is_apart=lambda: False)
