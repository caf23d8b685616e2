"""What a worker does, one line for each thing that happens."""

import shlex
import time

from bullpen.cluster.announcing import AgentThere
from bullpen.cluster.outcomes import Outcome
from bullpen.cluster.worker_events import Away, Began, Ended, Examined, GivenUp, Joined, Waits, WorkerEvent
from bullpen.cluster.worker_file import WorkerFile
from bullpen.database import shown_address
from bullpen.terminal.tables import safe_line
from bullpen.text.numbers import counted, duration

AWAY = "The server is away. What runs continues, and is told when it is back."
GIVEN_UP = (
    "Others took this worker for dead, since nothing was heard of it: what it ran is interrupted. It joins again."
)


class WorkerLines:
    """Prints lines for people, and knows how many turns run."""

    def __init__(self, file: WorkerFile, pools: tuple[str, ...], address: str) -> None:
        self.file = file
        self.has_joined = False
        self._pools = " and ".join(pools)
        self._server = shown_address(address)
        self._running = 0
        self._is_stopping = False

    def say(self, text: str) -> None:
        """Print a line with the time."""
        print(f"{time.strftime('%H:%M:%S')} {safe_line(text)}", flush=True)

    def begin(self, name: str) -> None:
        """Say what this worker is, and what it lets others run."""
        print(safe_line(f"The worker {name} serves {self._pools} on {self._server}."))
        for line in self._allowed():
            print(safe_line(f"  {line}"), flush=True)

    def stops(self) -> None:
        """Say what happens after the first Ctrl-C."""
        self._is_stopping = True
        waits = f"Waits for {counted(self._running, 'turn')}; Ctrl-C again ends that." if self._running else ""
        self.say(f"Begins no more turns. {waits}".strip())

    def watch(self, event: WorkerEvent) -> None:
        """Say what has happened."""
        match event:
            case Waits():
                self.say(f"{event.reason} Trying again.")
            case Examined():
                for agent in event.announcement.agents:
                    self.say(_readiness(agent))
            case Joined():
                self.has_joined = True
                self.say(
                    f"Joined, and waits for turns of {self._pools}. Ctrl-C: begins no more; twice: ends what runs."
                )
            case GivenUp():
                self.say(GIVEN_UP)
            case Away():
                self.say(AWAY if event.is_away else "The server is back.")
            case Began():
                self._running += 1
                self.say(f"{event.member} begins in {event.conversation} ({event.pool}).")
            case Ended():
                self._running -= 1
                self.say(f"{event.member} in {event.conversation} {_how(event)}{self._left()}")

    def _left(self) -> str:
        return f" Waits for {counted(self._running, 'turn')}." if self._is_stopping and self._running else ""

    def _allowed(self) -> list[str]:
        file = self.file
        commands = "; ".join(shlex.join(command) for command in file.commands)
        lines = {
            "folders": ", ".join(f"{name} ({path})" for name, path in file.folders.items()),
            "agents": ", ".join(file.agents),
            "commands": commands,
            "at most": f'permissions "{file.permissions}", {counted(file.at_once, "turn")} at once',
            "without asking": ", ".join(file.allow),
            "models": ", ".join(file.models),
            "arguments": shlex.join(file.arguments),
            "variables": ", ".join(file.env),
        }
        return [f"{what}: {words}" for what, words in lines.items() if words]


def _readiness(agent: AgentThere) -> str:
    if agent.problems:
        return f"{agent.name} is not ready: {' '.join(agent.problems)}"
    return f"{agent.name} {agent.version} is ready."


def _how(ended: Ended) -> str:
    if not ended.is_its_end:
        return f"ended after {duration(ended.seconds)}, too late: it had been given up."
    return f"{_words(ended.outcome)} after {duration(ended.seconds)}{_why(ended.outcome)}."


def _words(outcome: Outcome) -> str:
    if outcome.kind == "cancelled":
        return "was cancelled"
    if outcome.kind == "lost":
        return "was ended"
    return "failed" if outcome.result.failure else "replied"


def _why(outcome: Outcome) -> str:
    failure = outcome.result.failure
    return f": {failure.message.rstrip('.')}" if failure else ""
