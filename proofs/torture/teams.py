"""Teams that never stop by themselves: every reply hands over. Each run of an agent leaves a line in a file."""

import json
import os
import random
from pathlib import Path
from typing import Any

from bullpen.conversation.member_agent import MemberAgent
from bullpen.conversation.running_turn import RunningTurn

TURN = "TORTURE_TURN"
WORDS = ("sun", "moon", "star", "rain", "snow", "wind", "fire", "lake", "hill", "tree", "leaf", "bird", "fish", "wolf")
PATTERNS = (
    "[NEXT: {0}]",
    "[NEXT: {0}, {1}]",
    "[NEXT: {0} & {1}]",
    "[NEXT: {0} !P1, {1} !P3]",
    "[DROP: ALL] [NEXT: {1}]",
    "[NEXT: {0} & {1}, {0}, nobody]",
)
# One process of the shell: a thousand of them are nothing, and it is a real program all the same.
AGENT = """\
echo "$TORTURE_TURN" >> {runs}
cat > /dev/null
[ {failing} -gt 0 ] && [ $((TORTURE_TURN % {failing}1)) -eq 0 ] && exit 7
{pause}
set -- {words}
shift $((TORTURE_TURN % {kinds}))
word=$1
set -- {patterns}
shift $((TORTURE_TURN % {count}))
echo "$word and $word again $1"
"""


class LoopingTeam:
    """A random team in a folder; the same seed makes the same team."""

    def __init__(self, folder: Path, seed: int, *, fails: bool = False, limits: dict[str, Any] | None = None) -> None:
        self.random = random.Random(seed)
        self.folder = folder
        self.db = folder / "conversations.db"
        self.names = [f"agent{letter}" for letter in "abcdef"[: self.random.randint(2, 6)]]
        self.limits = self._limits() if limits is None else limits
        self._fails = fails

    @property
    def path(self) -> Path:
        return self.folder / "team.toml"

    def write(self) -> Path:
        self.folder.mkdir(parents=True, exist_ok=True)
        lines = ["hand_over_note = false", "[limits]", *(f"{key} = {value}" for key, value in self.limits.items())]
        lines += ["[[member]]", 'name = "kim"']
        for name in self.names:
            script = self.folder / f"{name}.sh"
            script.write_text(self._script(name), encoding="utf-8")
            command = json.dumps(["/bin/sh", str(script)])
            lines += ["[[member]]", f'name = "{name}"', f"command = {command}", f'env = ["{TURN}"]', "window = 3"]
        self.path.write_text("\n".join(lines), encoding="utf-8")
        return self.path

    def runs(self) -> list[str]:
        """Return the turns whose agents ran, in order."""
        file = self.folder / "runs"
        return file.read_text(encoding="utf-8").split() if file.exists() else []

    def word(self) -> str:
        """Return something that a person says."""
        first, second = self.random.sample(self.names, 2)
        return f"{self.random.choice(WORDS)}! {self.random.choice(PATTERNS).format(first, second)}"

    def _limits(self) -> dict[str, Any]:
        limits: dict[str, Any] = {"turns_per_message": self.random.randint(1, 12)}
        limits["back_and_forth"] = self.random.choice([2, 6, 100])
        limits["identical_replies"] = self.random.choice([2, 3, 100])
        return limits | self.random.choice([{}, {}, {"minutes": 0.001}])

    def _script(self, name: str) -> str:
        others = [other for other in self.names if other != name] * 2
        patterns = [self.random.choice(PATTERNS).format(*self.random.sample(others, 2)) for _ in range(5)]
        return AGENT.format(
            runs=self.folder / "runs",
            failing=self.random.randint(0, 2) if self._fails else 0,
            pause=self.random.choice([":", ":", "sleep 0.02", "sleep 0.05"]),
            words=" ".join(WORDS),
            kinds=self.random.choice([1, 2, len(WORDS)]),
            patterns=" ".join(f"'{pattern}'" for pattern in patterns),
            count=len(patterns),
        )


def tell_agents_their_turns() -> None:
    """Let every agent know the number of its turn, in a variable that its member may pass on."""
    real = MemberAgent.take_turn

    async def take_turn(seat: MemberAgent, given: Any, running: RunningTurn, **keys: Any) -> Any:
        # Nothing else runs between this line and the moment when the variable is read.
        os.environ[TURN] = running.turn.id
        return await real(seat, given, running, **keys)

    setattr(MemberAgent, "take_turn", take_turn)  # noqa: B010
