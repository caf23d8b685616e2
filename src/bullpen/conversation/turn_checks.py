"""TurnChecks: commands of the team file that run in the workspace after a turn that changed files."""

import asyncio
import logging
from collections.abc import Collection, Sequence
from functools import partial
from pathlib import Path

from msgspec import Struct
from msgspec.structs import replace

from bullpen.agents.check_run import CheckRun
from bullpen.agents.runner import to_the_end
from bullpen.check_results import CheckResult, CheckState
from bullpen.clock import milliseconds
from bullpen.conversation.check_places import CheckRunner
from bullpen.conversation.events import Checked, FilesChanged, Trouble
from bullpen.conversation.file_history import FileHistory
from bullpen.conversation.journal import Journal
from bullpen.conversation.own_workspaces import OwnWorkspaces
from bullpen.conversation.program_changes import ProgramQuestions, digests_for, with_programs
from bullpen.conversation.returned_checks import returned, still_red
from bullpen.conversation.watched_folder import WatchedFolder, all_of
from bullpen.errors import BullpenError
from bullpen.file_changes import ChangeRecord, FolderChanges
from bullpen.routing.obstacles import Checking
from bullpen.routing.queue import WaitingTurn
from bullpen.routing.rounds import candidate_of
from bullpen.store.base import Store
from bullpen.team.team import Check

logger = logging.getLogger(__name__)

INTERRUPTED = "bullpen stopped while this check was running."


class Ended(Struct, kw_only=True):
    """A turn that has ended, until its files are checked."""

    turn: WaitingTurn
    folder: WatchedFolder
    shared: Path | None
    """If that is the agent's own workspace, the agent's place in the shared folder."""
    look: "asyncio.Task[ChangeRecord | None]"
    is_stored: asyncio.Event
    """Set when its end is stored, so that what is returned comes after its reply."""
    reply: str = ""
    """The id of the message that it ended with."""
    task: "asyncio.Task[None] | None" = None


class TurnChecks:
    """Runs the checks of a conversation. Nothing that goes wrong here makes a turn fail."""

    def __init__(
        self,
        journal: Journal,
        history: FileHistory | None,
        checks: Sequence[Check],
        runner: CheckRunner,
        own: OwnWorkspaces,
        programs: ProgramQuestions,
    ) -> None:
        self.running: dict[int, CheckResult] = {}
        """Those that run now, by their numbers."""
        self._journal = journal
        self._state = journal.state
        self._history = history
        self._checks = checks
        self._runner = runner
        self._own = own
        self._programs = programs
        self._ended: dict[str, Ended] = {}

    @property
    def is_checking(self) -> bool:
        """Whether checks run, or are about to."""
        return bool(self._ended)

    async def start(self) -> None:
        """Say of the checks that the process before this one had begun that nobody knows how they ended."""
        for result in await self._state.read(_running):
            interrupted = replace(result, state="interrupted", note=INTERRUPTED)
            self._journal.publish(Checked(result=await self._state.keep_check(interrupted)))

    async def finish(self) -> None:
        """Wait until everything is checked that turns have changed which have ended."""
        await all_of(ended.task for ended in self._ended.values() if ended.task is not None)

    async def cancel(self, turn_ids: Collection[str] = ()) -> tuple[WaitingTurn, ...]:
        """Stop the checks of some turns, or all of them, and wait until that is stored; return their turns."""
        chosen = [ended for ended in self._ended.values() if not turn_ids or ended.turn.id in turn_ids]
        tasks = [ended.task for ended in chosen if ended.task is not None]
        for task in tasks:
            task.cancel()
        await all_of(tasks)
        return tuple(ended.turn for ended in chosen)

    async def close(self) -> None:
        """Stop all of them, and wait until that is stored."""
        await self.cancel()

    def stop(self) -> None:
        """Stop all of them, without waiting."""
        for ended in self._ended.values():
            if ended.task is not None:
                ended.task.cancel()

    # After a turn

    def after(
        self,
        turn: WaitingTurn,
        look: "asyncio.Task[ChangeRecord | None]",
        folder: WatchedFolder,
        shared: Path | None,
    ) -> "asyncio.Task[None] | None":
        """Check what a turn has changed that has ended, as soon as that is known. Who would edit there waits for it."""
        if not self._checks or self._journal.closing.is_set():
            return None
        ended = Ended(turn=turn, folder=folder, shared=shared, look=look, is_stored=asyncio.Event())
        self._ended[turn.id] = ended
        self._state.checking[turn.id] = Checking(turn=turn, workspace="" if shared else folder.path)
        ended.task = asyncio.create_task(self._check(ended))
        folder.checks.add(ended.task)
        ended.task.add_done_callback(folder.checks.discard)
        ended.task.add_done_callback(lambda _: self._forget(turn.id))
        return ended.task

    def replied(self, turn_id: str, message_id: str) -> None:
        """Note with which message a turn ended, before anybody is asked to answer it."""
        if turn_id in self._ended:
            self._ended[turn_id].reply = message_id
            self._state.checking[turn_id] = replace(self._state.checking[turn_id], reply=message_id)

    def stored(self, turn_id: str) -> None:
        """Note that the end of a turn is stored."""
        if turn_id in self._ended:
            self._ended[turn_id].is_stored.set()

    def _forget(self, turn_id: str) -> None:
        del self._ended[turn_id]
        del self._state.checking[turn_id]
        self._journal.changed.set()

    async def _check(self, ended: Ended) -> None:
        try:
            record = await asyncio.shield(ended.look)
            if record is None or not record.changes.files:
                if record is not None and ended.turn.message_id in self._state.progress.returns:
                    await ended.is_stored.wait()
                    await self._journal.shielded(partial(self._say_still_red, ended))
                return
            results = await self._check_all(ended)
            await ended.is_stored.wait()
            if ended.reply:
                await self._journal.shielded(partial(self._return, ended, results))
        except (BullpenError, OSError) as error:
            logger.warning("not checked conversation=%s error=%s", self._state.conversation_id, error)
            self._journal.publish(Trouble(text=f"What turn {ended.turn.id} changed could not be checked: {error}"))

    async def _check_all(self, ended: Ended) -> list[tuple[Check, CheckResult]]:
        root = Path(ended.folder.path)
        places = await asyncio.to_thread(self._runner.placed, self._checks, root, ended.shared)
        if not places:
            return []
        async with ended.folder.checking(f"checks of {ended.turn.id}"):
            return [(check, await self._run(check, place, ended)) for check, place in places]

    # One check

    async def _run(self, check: Check, place: Path, ended: Ended) -> CheckResult:
        """Run a check, and store that it began and how it ended, whenever this is cancelled."""
        turn = ended.turn
        result = CheckResult(
            turn_id=turn.id,
            member=turn.member,
            name=check.name,
            command=check.command,
            workspace=str(place),
            state="running",
            at=milliseconds(),
        )
        run, is_cancelled = CheckRun(), True
        begun: list[CheckResult] = []
        changes: list[ChangeRecord] = []
        try:
            await to_the_end(self._begin(result, check, ended, begun, changes))
            await self._runner.run(check, place, run)
            is_cancelled = False
        finally:
            for one in begun:
                result = _result(one, run, is_cancelled=is_cancelled)
                await to_the_end(self._finish(result, changes, ended))
        return result

    async def _begin(
        self, result: CheckResult, check: Check, ended: Ended, begun: list[CheckResult], changes: list[ChangeRecord]
    ) -> None:
        """Store that a check begins, and what its folder is: then what it changes itself is known to be its own."""
        stored = await self._state.keep_check(result)
        begun.append(stored)
        self.running[stored.number] = stored
        self._journal.publish(Checked(result=stored))
        if self._history is not None:
            changes.append(await self._look_before(self._history, check, ended))

    async def _finish(self, result: CheckResult, changes: Sequence[ChangeRecord], ended: Ended) -> None:
        try:
            for change in changes:
                await self._look_after(change, ended)
        except (BullpenError, OSError) as error:
            logger.warning("changes of a check not recorded check=%s error=%s", result.name, error)
            self._journal.publish(Trouble(text=f"What the check {result.name} itself changed is not known: {error}"))
        try:
            result = await self._state.keep_check(result)
        finally:
            # Also if that cannot be stored: it does not run any more.
            del self.running[result.number]
            self._journal.publish(Checked(result=result))

    async def _look_before(self, history: FileHistory, check: Check, ended: Ended) -> ChangeRecord:
        folder, turn = ended.folder, ended.turn
        begun = ChangeRecord(
            kind="check",
            turn_id=turn.id,
            member=turn.member,
            check=check.name,
            at=milliseconds(),
            state="begun",
            changes=FolderChanges(
                folder=folder.path,
                before=folder.known,
                digests=await asyncio.to_thread(digests_for, folder.workspace, folder.workspace.path_there),
            ),
        )
        stored = await self._state.in_store(history.add, begun)
        folder.at_work[f"check {stored.number}"] = stored
        return stored

    async def _look_after(self, begun: ChangeRecord, ended: Ended) -> None:
        folder, history = ended.folder, self._history
        if history is None:
            return
        try:
            after = await asyncio.to_thread(folder.workspace.snapshot)
            folder.seen(after)
            if ended.shared is not None:
                await asyncio.to_thread(self._own.seen, begun.member, begun.turn_id, after.id)
            changes = await asyncio.to_thread(folder.workspace.compare, begun.changes.before, after.id)
            changes = await asyncio.to_thread(with_programs, folder.workspace, begun.changes, changes)
            done = await self._state.in_store(history.finish, begun, changes)
            self._programs.note(done)
            if done.changes.files:
                self._journal.publish(FilesChanged.of(done))
        finally:
            del folder.at_work[f"check {begun.number}"]

    # What goes back

    async def _say_still_red(self, ended: Ended) -> None:
        if ended.reply and not self._journal.closing.is_set():
            build = partial(still_red, self._state, ended.turn, ended.reply, at=milliseconds())
            await self._journal.commit_message(build)

    async def _return(self, ended: Ended, results: Sequence[tuple[Check, CheckResult]]) -> None:
        broken = [(check, result) for check, result in results if check.on_red == "return" and result.is_broken]
        if candidate_of(self._state.progress.rounds, ended.turn.id) is not None:
            # One of several: who picks sees it beside the result.
            return
        if broken and not self._journal.closing.is_set():
            build = partial(returned, self._state, ended.turn, ended.reply, broken, at=milliseconds())
            await self._journal.commit_message(build)


def _running(store: Store, conversation_id: str) -> list[CheckResult]:
    return store.running_checks(conversation_id)


def _result(begun: CheckResult, run: CheckRun, *, is_cancelled: bool) -> CheckResult:
    """Return how a check ended."""
    state: CheckState = "green" if run.exit_code == 0 else "red"
    note = ""
    if is_cancelled:
        state, note = "cancelled", "It was cancelled."
    elif run.is_lost:
        state, note = "interrupted", run.problem
    elif run.is_timed_out:
        state, note = "timed_out", "It did not end within its time, and was stopped."
    elif not run.is_started:
        state, note = "not_started", run.problem
    return replace(
        begun,
        state=state,
        note=note,
        exit_code=run.exit_code,
        seconds=run.seconds,
        output=run.output,
        left_out=run.left_out,
    )
