"""Figure: the CPU time that a driver adds to a turn, compared with a stream in one direction."""

import asyncio
from functools import partial
from time import process_time

from msgspec.structs import replace

from benchmarks.agents_stage import RESULT, own_folder, played_by, prompt
from benchmarks.measure import Run, medians
from benchmarks.report import Figure, duration
from bullpen.agents import AgentSpec, Permission, agent_spec, run_turn
from bullpen.agents.registry import spec_for
from bullpen.turn_events import Event

GOAL_SECONDS = 0.001
ONE_WAY = "one-way stream"
ROUNDS, QUICK_ROUNDS = 200, 30

# Each answers what it is asked until it has a prompt, says something, and ends when its input does.
CLAUDE = f"read -r line\necho '{RESULT}'\n"
CODEX = """
read -r line; echo '{"id":1,"result":{}}'
read -r line; read -r line
echo '{"id":2,"result":{"thread":{"id":"t"},"approvalPolicy":"untrusted","approvalsReviewer":"user","sandbox":{"type":"readOnly"}}}'
read -r line; echo '{"id":3,"result":{"turn":{"id":"u"}}}'
echo '{"method":"item/completed","params":{"threadId":"t","item":{"type":"agentMessage","id":"m","text":"ok"}}}'
echo '{"method":"turn/completed","params":{"threadId":"t","turn":{"id":"u","status":"completed"}}}'
cat > /dev/null
"""  # noqa: E501
ACP = """
read -r line; echo '{"id":1,"result":{"protocolVersion":1}}'
read -r line; echo '{"id":2,"result":{"sessionId":"s"}}'
read -r line
echo '{"method":"session/update","params":{"sessionId":"s","update":{"sessionUpdate":"agent_message_chunk","content":{"type":"text","text":"ok"}}}}'
echo '{"id":3,"result":{"stopReason":"end_turn"}}'
cat > /dev/null
"""  # noqa: E501


def measure(*, quick: bool) -> Figure:
    """Run turns of the same length in turn, with each driver and with none."""
    with own_folder() as folder, asyncio.Runner() as runner:

        def turn(spec: AgentSpec) -> Run:
            permissions: Permission = "ask" if "ask" in spec.permissions else "read-only"
            run = partial(run_turn, spec, prompt(spec), emit=_nobody, cwd=folder, permissions=permissions)
            return lambda: runner.run(run())

        taken = medians(
            {name: turn(spec) for name, spec in _specs().items()},
            rounds=QUICK_ROUNDS if quick else ROUNDS,
            clock=process_time,
        )
    more = {name: seconds - taken[ONE_WAY] for name, seconds in taken.items() if name != ONE_WAY}
    return Figure(
        title="The CPU time of a driver",
        goal=f"a turn in which an agent can ask uses at most {duration(GOAL_SECONDS)} more CPU time of our process",
        met=max(more.values()) <= GOAL_SECONDS,
        measured=", ".join(f"{name}: {duration(max(seconds, 0.0))} more" for name, seconds in more.items()),
        columns=("how we speak with it", "CPU time of a turn", "more than a one-way stream"),
        rows=[(name, duration(taken[name]), duration(max(more.get(name, 0.0), 0.0))) for name in taken],
        meaning="CPU time of our process alone, for a program of a few lines of sh that says one word. Codex and the "
        "Agent Client Protocol begin with a handshake of three requests.",
    )


def _specs() -> dict[str, AgentSpec]:
    claude = played_by("claude", "/bin/sh", "-c", CLAUDE)
    codex = agent_spec("codex").with_permissions("ask")
    codex = replace(codex, command=("/bin/sh", "-c", CODEX), permissions={"ask": ()}, last_arguments=())
    return {
        ONE_WAY: replace(claude, driver=None),
        "Claude Code's control protocol": claude,
        "Codex's app-server": replace(codex, asking=codex),
        "Agent Client Protocol": spec_for("acp", ["/bin/sh", "-c", ACP]),
    }


def _nobody(_: Event) -> None:
    pass
