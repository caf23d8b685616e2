"""RemoteChecks: checks of the team file that run on the worker that has the files, if its own file lets them."""

import asyncio
from collections.abc import Sequence
from pathlib import Path

import msgspec

from bullpen.agents.check_run import CheckRun
from bullpen.cluster.errands import run_errand
from bullpen.cluster.file_work import CheckWork, FileWork, FindPlaces
from bullpen.cluster.folder_names import folder_at, read_folder
from bullpen.cluster.node import Node
from bullpen.cluster.outcomes import Outcome
from bullpen.cluster.remote_files import WorkerDesk
from bullpen.conversation.check_places import Placed
from bullpen.errors import WorkerAway
from bullpen.team.team import Check


class RemoteChecks:
    """Runs checks on the workers of one conversation."""

    def __init__(self, node: Node, conversation_id: str) -> None:
        self._node = node
        self._id = conversation_id
        self._loop = asyncio.get_running_loop()

    def placed(self, checks: Sequence[Check], root: Path, shared: Path | None) -> list[Placed]:
        """Return the checks of a workspace, each with the folder in which it runs there. Blocks."""
        del shared
        there, path = read_folder(root)
        desk = WorkerDesk(self._node, self._loop, self._id, there)
        ask = FindPlaces(tuple(check.cwd for check in checks))
        found = desk.ask(FileWork(folder=path, ask=ask), tuple[str, ...])
        return [(check, folder_at(there, place)) for check, place in zip(checks, found, strict=True) if place]

    async def run(self, check: Check, place: Path, run: CheckRun) -> None:
        """Run a check and fill in how it ended, also if this is cancelled: then its processes are ended first."""
        there, path = read_folder(place)
        work = CheckWork(folder=path, command=check.command, timeout=check.timeout)

        def fill_in(outcome: Outcome) -> None:
            run.is_lost = outcome.kind == "lost"
            if outcome.result.answer and not run.is_lost:
                ended = msgspec.msgpack.decode(outcome.result.answer, type=CheckRun)
                for name in CheckRun.__struct_fields__:
                    setattr(run, name, getattr(ended, name))

        try:
            await run_errand(self._node, self._id, there, work, on_end=fill_in)
        except WorkerAway as error:
            run.problem = str(error)
        except msgspec.MsgspecError as error:
            run.problem = f"What the worker {there.worker} answers cannot be read: {error}."
