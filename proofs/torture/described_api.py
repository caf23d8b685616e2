"""The API and its own description: schemathesis asks for everything that is described, and for what is not."""

import asyncio
import os
import tempfile
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from random import Random
from typing import Any
from unittest import mock

import schemathesis
from msgspec.structs import replace
from proofs.torture.api_stage import MEMBERS, SAID, SAID_AS, Stage, faulty, leaving_soon, staged
from proofs.torture.outcome import Outcome, Size, Torture
from schemathesis.engine import Status, events, from_schema
from schemathesis.hooks import GLOBAL_HOOK_DISPATCHER, HookContext
from starlette.types import ASGIApp

from bullpen.web.api import CALLS
from bullpen.web.app import create_app
from bullpen.web.openapi import description

EXAMPLES: dict[Size, int] = {"small": 4, "full": 250}
"""For each call, beside those that schemathesis works out to reach every limit in the description."""
SECONDS = 30
CONVERSATION = "/api/conversations/{id}"
FAULTY = {f"GET {CONVERSATION}/queue", f"GET {CONVERSATION}/events", f"POST {CONVERSATION}/task"}
CHECKS = {
    # It knows no other answer than 401, and what changes something without an origin or a key is a stranger's: 403.
    # Which of them who gets is for another class (strangers.py); that nobody comes in is checked here too.
    "missing_required_header": {"enabled": False},
    # A description cannot say who is in a team or which turn waits; such requests are refused with a sentence.
    "positive_data_acceptance": {"enabled": False},
    # It follows what it has created; here most requests are about other conversations, some of which do not exist.
    "ensure_resource_availability": {"enabled": False},
}


class Count:
    """What was asked, and what came of it."""

    def __init__(self) -> None:
        self.answers: Counter[str] = Counter()
        self.modes: Counter[str] = Counter()
        self.checks = 0
        self.failures: dict[tuple[str, str, str], str] = {}

    def take(self, event: events.EngineEvent) -> None:
        """Count one event of schemathesis."""
        match event:
            case events.ScenarioFinished():
                self._take_scenario(event)
            case events.NonFatalError():
                self.failures[event.label, "error", type(event.value).__name__] = f"{event.label}: {event.value}"
            case events.FatalError():
                self.failures["", "error", ""] = f"schemathesis failed: {event.exception}"

    def _take_scenario(self, event: events.ScenarioFinished) -> None:
        asked = event.recorder
        for id_, sent in asked.interactions.items():
            meta = asked.cases[id_].value.meta
            self.modes["as described" if meta and meta.generation.mode.is_positive else "otherwise"] += 1
            self.answers[f"{sent.response.status_code // 100}xx" if sent.response else "none"] += 1
        for id_, checks in asked.checks.items():
            self.checks += len(checks)
            case = asked.cases[id_].value
            for check in checks:
                if check.status == Status.FAILURE and check.failure_info:
                    failure, label = check.failure_info.failure, f"{case.method} {case.path}"
                    text = " ".join(f"{failure.title}: {failure.message}".split())[:400]
                    sample = check.failure_info.code_sample[:400]
                    self.failures.setdefault((label, check.name, failure.title), f"{label}: {text}, for {sample}")


def run(size: Size, seed: int) -> Outcome:
    """Ask for everything, in the ways that are described and in others."""
    return asyncio.run(_asked(EXAMPLES[size], seed))


def run_with_fault(seed: int) -> Outcome:
    """Ask a server three answers of which are not what is described. All three must be found, and nothing else."""
    outcome = asyncio.run(_asked(1, seed, is_faulty=True))
    found = {failure.partition(": ")[0] for failure in outcome.failures}
    are_found = found >= FAULTY and all(call.endswith(("/queue", "/events", "/task")) for call in found)
    return outcome if are_found else replace(outcome, failures=())


async def _asked(examples: int, seed: int, *, is_faulty: bool = False) -> Outcome:
    with tempfile.TemporaryDirectory(prefix="torture-") as name:
        folder = Path(name)
        with (
            mock.patch.dict(
                os.environ, {"BULLPEN_HOME": str(folder / "home"), "XDG_STATE_HOME": str(folder / "state")}
            ),
            mock.patch("bullpen.web.server.create_app", _faulty_app if is_faulty else _app),
        ):
            async with staged(folder) as stage:
                count = await asyncio.to_thread(_ask, stage, examples, seed)
                damage = await stage.served.hub.read(lambda store: store.fsck())
    return _outcome(count, [finding.text for finding in damage])


def _app(*args: Any) -> ASGIApp:
    return leaving_soon(create_app(*args))


def _faulty_app(*args: Any) -> ASGIApp:
    return leaving_soon(faulty(create_app(*args)))


def _outcome(count: Count, damage: list[str]) -> Outcome:
    return Outcome(
        tried=count.answers.total(),
        unit="requests",
        failures=(*count.failures.values(), *damage),
        figures={
            "calls": len(CALLS),
            **{f"with input {mode}": number for mode, number in sorted(count.modes.items())},
            **{f"answered with {status}": number for status, number in sorted(count.answers.items())},
            "checks of an answer": count.checks,
        },
    )


def _ask(stage: Stage, examples: int, seed: int) -> Count:
    config = schemathesis.Config.from_dict(
        {
            "seed": seed,
            "base-url": stage.served.url,
            "headers": stage.served.headers,
            "request-timeout": SECONDS,
            "continue-on-failure": True,
            "checks": CHECKS,
            # The database would bring up again what an earlier run found, and the same seed would not do the same.
            "generation": {"max-examples": examples, "no-shrink": True, "database": "none"},
        }
    )
    count = Count()
    with _real_names(stage, Random(seed)):
        for event in from_schema(schemathesis.openapi.from_dict(description(), config=config)).execute():
            count.take(event)
    return count


@contextmanager
def _real_names(stage: Stage, random: Random) -> Iterator[None]:
    """Let most requests be about a conversation, turns and members that there are: the others are soon refused."""

    def before_call(context: HookContext, case: schemathesis.Case[Any], kwargs: dict[str, object]) -> None:
        del context, kwargs
        if isinstance(case.path_parameters.get("id"), str):
            chosen = random.choices([stage.talk, stage.closed, case.path_parameters["id"]], weights=[7, 1, 2])
            case.path_parameters = {**case.path_parameters, "id": chosen[0]}
        if isinstance(case.body, dict) and case.meta and case.meta.generation.mode.is_positive:
            case.body = {name: _real(name, value, random) for name, value in case.body.items()}

    def after_call(context: HookContext, case: schemathesis.Case[Any], response: schemathesis.Response) -> None:
        del context, response
        if case.path.endswith("/close"):
            stage.open_again()

    hooks: dict[str, Callable[..., None]] = {"before_call": before_call, "after_call": after_call}
    for name, hook in hooks.items():
        GLOBAL_HOOK_DISPATCHER.register_hook_with_name(hook, name)
    try:
        yield
    finally:
        for hook in hooks.values():
            GLOBAL_HOOK_DISPATCHER.unregister(hook)


def _real(name: str, value: Any, random: Random) -> Any:
    turn = str(random.randrange(1, 20))
    there_are: dict[str, Any] = {
        "turn": turn,
        "turns": [turn],
        "member": random.choice(MEMBERS),
        "names": random.choice((*MEMBERS, " & ".join(MEMBERS))),
        "sender": random.choice(("kim", None)),
        "id": random.choice((SAID_AS, None)),
        "text": SAID,
    }
    return there_are[name] if name in there_are and random.random() < 0.6 else value


TORTURE = Torture(
    name="the API as described",
    does="schemathesis reads the OpenAPI description that the server writes of itself, and asks a running server with "
    "a conversation in it for everything that it describes: with input that is as described, up to every limit, and "
    "with input that is not; with other methods, without keys, and one call after the other.",
    promise="nothing makes the server fail; every answer has a status, a type and a body as described, each event of a "
    "stream too; what is not as described is refused, nobody comes in without a key, and `fsck` finds nothing.",
    run=run,
    fault="the queue and the events are something else than what is described, and setting the task fails.",
    seen_as="/task: Server error",
    run_with_fault=run_with_fault,
    order=81,
)
