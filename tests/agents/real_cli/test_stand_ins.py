"""Stand-ins of the genuine CLIs: each vendor's words for a failure, what the stand-in is asked, and who is asked when.

What a vendor says comes from a scripted model; what becomes of it are the words of the CLI itself.
"""

import asyncio
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
from tests.agents.real_cli.scene import until

from bullpen.app import open_team
from bullpen.clock import milliseconds
from bullpen.conversation import turn_loop
from bullpen.conversation.conversation import Conversation
from bullpen.conversation.member_agent import Extra
from bullpen.routing.rests import LEAST_SECONDS
from bullpen.testing.clock import ManualClock
from bullpen.testing.models import ModelServer, Reply
from bullpen.testing.settings import GEMINI_SETTINGS, SETTINGS
from bullpen.view.state import conversation_view

CLIS = ("claude", "codex", "gemini", "qwen")
MODELS = {"gemini": "gemini-2.5-flash", "qwen": "qwen3-coder-plus"}
HOURS = 2
ASKED = "Please look at it. 你好 {x} %s"
TASK = "A parser for dates."


def out_until(cli: str) -> Reply:
    """Return what a vendor answers whose quota comes back in two hours."""
    at = int(time.time()) + HOURS * 3600
    match cli:
        case "claude":
            limit = "anthropic-ratelimit-unified"
            headers = {f"{limit}-status": "rejected", f"{limit}-representative-claim": "five_hour"}
            window = {"status": "rejected", "reset": str(at), "utilization": "1.0"}
            headers |= {f"{limit}-reset": str(at)} | {f"{limit}-5h-{key}": value for key, value in window.items()}
            return Reply(error=429, error_message="This request would exceed your rate limit.", headers=headers)
        case "codex":
            fields = {"type": "usage_limit_reached", "plan_type": "plus", "resets_at": at}
            return Reply(error=429, error_message="The usage limit has been reached", error_fields=fields)
        case "gemini":
            # It would wait for two hours, and write nothing meanwhile.
            return Reply(error=429, error_message=f"Your quota will reset after {HOURS}h.", retry_after_seconds=7200)
        case _:
            # Told nothing, it asks seven times in more than a minute.
            return Reply(error=429, error_message=f"Quota exceeded, try again in {HOURS}h.", retry_after_seconds=1)


FAILURES = {
    "429 until": (out_until, "its quota is used up"),
    "429": (lambda _: Reply(error=429, error_message="Too many requests"), "its quota is used up"),
    "529": (lambda _: Reply(error=529, error_message="Overloaded"), "its vendor is overloaded or cannot be reached"),
    "401": (lambda _: Reply(error=401, error_message="Invalid key"), "it is not signed in"),
}
USUAL = [*((cli, "429 until") for cli in CLIS), ("claude", "529"), ("codex", "401")]
CASES = [
    pytest.param(cli, failure, id=f"{cli} {failure}", marks=() if (cli, failure) in USUAL else pytest.mark.torture)
    for cli in CLIS
    for failure in FAILURES
    # It asks seven times in more than a minute then.
    if cli != "qwen" or failure not in ("429", "529")
]


@asynccontextmanager
async def opened(
    folder: Path, programs: dict[str, str], **members: str
) -> AsyncIterator[tuple[Conversation, dict[str, ModelServer]]]:
    """Open a conversation in which kim has an agent max and others may stand in; each program has a model."""
    lines = [f'task = "{TASK}"\nlead = "max"\n[[member]]\nname = "kim"']
    for name, cli in programs.items():
        lines.append(f'[[member]]\nname = "{name}"\nagent = "{cli}"\n{members.get(name, "")}')
        lines += [f'model = "{MODELS[cli]}"'] if cli in MODELS else []
    # Not beside the homes of the CLIs, whose settings make programs run.
    team = folder / "project" / "team.toml"
    team.parent.mkdir(exist_ok=True)
    team.write_text("\n".join(lines), encoding="utf-8")
    models = {name: ModelServer() for name in programs}
    extra = {}
    for name, cli in programs.items():
        await models[name].__aenter__()
        settings = SETTINGS[cli](models[name].base_url, folder / f"home-{name}")
        env = dict(settings.env)
        if cli == "claude":
            # As with a subscription, of which alone it is told how much is used, and until when.
            env["CLAUDE_CODE_OAUTH_TOKEN"] = env.pop("ANTHROPIC_API_KEY")
        extra[name] = Extra(env=env, arguments=settings.arguments)
    try:
        async with open_team(team, db=folder / "c.db", extra=extra) as conversation:
            yield conversation, models
    finally:
        for server in models.values():
            await server.__aexit__(None, None, None)


async def said(conversation: Conversation, text: str) -> list[str]:
    """Say something, and return all that was said after it."""
    before = len(await conversation.messages(limit=99))
    await conversation.say(text)
    await conversation.until_quiet()
    return [f"{one.message.speaker.role_id}: {one.message.content}" for one in await conversation.messages(limit=99)][
        before + 1 :
    ]


@pytest.mark.needs("claude", "codex")
@pytest.mark.parametrize(("cli", "failure"), CASES)
def test_a_stand_in_has_the_same_turn_and_the_role_goes_back(
    cli: str, failure: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    script, why = FAILURES[failure]
    other = "claude" if cli == "codex" else "codex"
    if failure != "429 until":
        # It waits for five seconds before it tries again.
        monkeypatch.setitem(GEMINI_SETTINGS, "general", {"enableAutoUpdate": False, "maxAttempts": 1})
    role = 'system_instruction = "You are the builder."\nstand_in = ["eva"]'

    async def converse() -> None:
        async with opened(tmp_path, {"max": cli, "eva": other}, max=role) as (conversation, models):
            models["max"].script(script(cli))
            models["eva"].script(Reply(text="Done by another."))
            told, answered = await said(conversation, ASKED)
            assert told.startswith("bullpen: eva stands in for max until ")
            assert told.endswith(f": {why}.")
            assert answered == "max: Done by another."
            sent = "\n".join(models["eva"].requests[-1].texts)
            for part in ("You are the builder.", TASK, ASKED):
                assert part in sent

            if failure != "429 until":
                return

            requests = len(models["max"].requests)
            assert await said(conversation, "And this?") == ["max: Done by another."]
            sent = "\n".join(models["eva"].requests[-1].texts)
            for part in ("You are the builder.", TASK, ASKED, "Done by another.", "And this?"):
                assert part in sent
            assert len(models["max"].requests) == requests, "nobody asks a vendor that rests"

            (rest,) = conversation.progress.rests.values()
            assert abs(rest.until - milliseconds() - HOURS * 3_600_000) < 120_000
            monkeypatch.setattr(turn_loop, "milliseconds", lambda: rest.until)
            models["max"].script(Reply(text="I am back."))
            back = "bullpen: max is back: eva no longer stands in for it."
            assert await said(conversation, "And now?") == [back, "max: I am back."]
            assert len(models["eva"].requests) == 2

    asyncio.run(converse())


@pytest.mark.needs("claude", "codex")
def test_nobody_is_asked_while_all_rest(tmp_path: Path, clock: ManualClock) -> None:
    soon = Reply(error=429, error_message="Your limit resets in 1s")

    async def converse() -> None:
        team = {"max": "codex", "eva": "claude"}
        async with opened(tmp_path, team, max='stand_in = ["eva"]') as (conversation, models):
            at = {"type": "usage_limit_reached", "resets_at": int(clock.time()) + 7200}
            models["max"].script(Reply(error=429, error_fields=at))
            models["eva"].script(soon)
            await conversation.say(ASKED)
            await until(lambda: len(conversation.progress.rests) == 2 and not conversation.running)
            (queued,) = conversation_view(conversation).queue
            assert queued.waits_for.startswith("sleeps until ")
            asked = [len(server.requests) for server in models.values()]
            models["eva"].script(Reply(text="Done."))
            # It looks at the queue whenever something is written down.
            clock.advance(LEAST_SECONDS - 1)
            await conversation.set_task("Something else.")
            (queued,) = conversation_view(conversation).queue
            assert queued.waits_for.startswith("sleeps until ")
            assert [len(server.requests) for server in models.values()] == asked
            clock.advance(2)
            await conversation.set_task(TASK)
            await conversation.until_quiet()
            assert (await conversation.messages())[-1].message.content == "Done."
            assert [len(server.requests) for server in models.values()] == [asked[0], asked[1] + 1]

    asyncio.run(converse())


@pytest.mark.needs("codex")
@pytest.mark.parametrize("cli", ["claude", "codex"])
def test_a_stand_in_begins_at_a_share_of_the_quota(cli: str, tmp_path: Path) -> None:
    at = str(int(time.time()) + HOURS * 3600)
    limit = "anthropic-ratelimit-unified"
    headers = {f"{limit}-5h-status": "allowed", f"{limit}-5h-utilization": "0.93", f"{limit}-5h-reset": at}
    headers |= {f"{limit}-status": "allowed", f"{limit}-reset": at, f"{limit}-representative-claim": "five_hour"}
    headers |= {"x-codex-primary-used-percent": "93", "x-codex-primary-reset-at": at}
    headers |= {"x-codex-primary-window-minutes": "300"}
    # Codex reports it only where people are asked.
    role = 'permissions = "ask"\nstand_in = ["eva"]\nstand_in_at = 0.9'

    async def converse() -> None:
        async with opened(tmp_path, {"max": cli, "eva": "codex"}, max=role) as (conversation, models):
            models["max"].script(Reply(text="Mine.", headers=headers))
            models["eva"].script(Reply(text="Done by another."))
            assert await said(conversation, ASKED) == ["max: Mine."]
            told, answered = await said(conversation, "And this?")
            assert told.endswith(": 93 % of its quota is used.")
            assert answered == "max: Done by another."

    asyncio.run(converse())
