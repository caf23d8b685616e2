"""Turns that go wrong at random: what the agent does, how patient we are, and when we cancel. A seed repeats them."""

from random import Random
from typing import Any

from msgspec import Struct

from benchmarks.agents_stage import scripted
from benchmarks.corpus import mixed

CLIS = ("claude", "codex", "gemini", "text")
FOREVER_SECONDS = 3600
SHARE_WITHOUT_SCRIPT = 0.15
SHARE_UNREAD = 0.25
SHARE_CANCELLED = 0.4

Step = dict[str, Any]

# What our scripted agent does not do. Each sleeps forever somewhere, or ends in an unusual way.
SHELL_PROGRAMS = (
    "exec >&- 2>&-; sleep {forever}",
    "exec <&-; sleep {forever}",
    "(sleep 0.05; setsid sleep {forever}) & echo hi",
    "setsid sh -c 'sleep {forever} & setsid sleep {forever} & sleep {forever}' & sleep 0.1; echo hi",
    "trap '' INT TERM; while :; do sleep {forever} & sleep 0.02; done",
    "setsid sh -c 'trap \"\" INT TERM; while :; do sleep {forever} & sleep 0.02; done' >&- 2>&- & sleep 0.1; echo hi",
    "setsid env -i sleep {forever} >&- 2>&- & sleep 0.1; echo hi",
    "kill -STOP $$",
    "kill -40 $$",
    "yes",
    "cat; cat /dev/zero",
)


class Plan(Struct, frozen=True, kw_only=True):
    """One turn."""

    number: int
    cli: str
    command: tuple[str, ...]
    prompt_characters: int
    idle_timeout: float
    total_timeout: float
    cancelled_after: tuple[float, ...] = ()
    """Seconds from the start, then from one cancellation to the next."""


def random_plan(seed: int, number: int) -> Plan:
    """Return the turn with this number; it depends on nothing else."""
    random = Random(f"{seed}/{number}")
    cli = random.choice(CLIS)
    if random.random() < SHARE_WITHOUT_SCRIPT:
        command: tuple[str, ...] = "sh", "-c", random.choice(SHELL_PROGRAMS).format(forever=FOREVER_SECONDS)
    else:
        command = scripted(cli, _script(random))
    return Plan(
        number=number,
        cli=cli,
        command=command,
        prompt_characters=random.choice((10, 1_000, 100_000, 900_000)),
        idle_timeout=random.choice((0.3, 0.6, 1.5)),
        total_timeout=random.choice((0.5, 1.0, 3.0)),
        cancelled_after=_cancellations(random),
    )


def _script(random: Random) -> list[Step]:
    unread: list[Step] = [{"read": False}] if random.random() < SHARE_UNREAD else []
    return [*unread, *(_step(random) for _ in range(random.randint(0, 4))), *_end(random)]


def _step(random: Random) -> Step:
    steps: tuple[Step, ...] = (
        {"say": mixed(random, 300), "chunk": random.choice((1, 5, 100)), "delay": random.choice((0, 0, 0.005))},
        {"think": mixed(random, 100)},
        {"tool": {"name": "Bash", "input": {"command": "ls"}, "output": mixed(random, 2000)}},
        {"retry": 429},
        {"unknown_event": {"type": "new", "text": mixed(random, 100)}},
        {"raw": "Debugger attached.\n"},
        {"raw_base64": "//7/Cg=="},
        {"raw_base64": "eyJ0eXBlIjoiYXNzaXN0YW50IiwieCI6Iv8ifQo="},
        {"half_line": '{"type":"assistant","mess'},
        {"stderr": mixed(random, 500)},
        _flood(random),
        {"slow_write": 40, "chunk": 5, "delay": 0.02},
        {"sleep": random.uniform(0, 0.4)},
        {"close_stdin": True},
        {"close_stdout": True},
        {"child": FOREVER_SECONDS, "holds_output": random.random() < 0.5},
        {"orphan": FOREVER_SECONDS, "holds_output": random.random() < 0.5},
        {"ignore": random.choice((["SIGINT"], ["SIGTERM"], ["SIGINT", "SIGTERM", "SIGHUP", "SIGPIPE"]))},
    )
    return random.choice(steps)


def _flood(random: Random) -> Step:
    size = random.choice((100_000, 3_000_000, 20_000_000))
    return {
        "flood": size,
        "line": random.choice((80, 1_000, 100_000, size)),
        "to": random.choice(("stdout", "stdout", "stderr")),
    }


def _end(random: Random) -> list[Step]:
    signals = ("SIGSEGV", "SIGABRT", "SIGKILL", "SIGTERM", "SIGINT", "SIGHUP", "SIGPIPE", "SIGSTOP", "SIGRTMIN")
    ends: tuple[list[Step], ...] = (
        [],
        [{"finish": True}, {"hang": True}],
        [{"hang": True}],
        [{"exit": random.choice((1, 2, 42, 130, 255))}],
        [{"finish": True}, {"exit": 1}],
        [{"kill_self": random.choice(signals)}],
        [{"no_result": True}],
        [{"error": random.choice((401, 429, 500))}],
    )
    return random.choice(ends)


def _cancellations(random: Random) -> tuple[float, ...]:
    if random.random() > SHARE_CANCELLED:
        return ()
    first = random.choice((0.0, random.uniform(0, 0.06), random.uniform(0, 1.5)))
    return first, *(random.uniform(0, 0.4) for _ in range(random.choice((0, 0, 1, 4))))
