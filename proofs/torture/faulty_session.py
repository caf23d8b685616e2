"""The process that disk_faults.py lets fail: a session of a store whose states are known from a run without faults."""

import shutil
import sys
from pathlib import Path
from typing import Any

from proofs.torture.forks import serve
from proofs.torture.power_cuts import goes_on
from proofs.torture.session import DATABASE, Session, state_of
from proofs.torture.shim import Shim

from bullpen.errors import BullpenError, StoreError
from bullpen.messages import ConversationMessage
from bullpen.store.base import StoredMessage
from bullpen.store.sqlite import SqliteStore

LASTING = 1_000_000
STEPS_AFTER = 10

Answer = dict[str, Any]


class FaultySession:
    """One life with one fault in it."""

    def __init__(self, folder: Path, seed: int, shim: Shim) -> None:
        self.session = Session(folder / DATABASE, seed)
        self.shim = shim
        self.errors: list[str] = []
        self.state = "missing"
        self.steps_after = 0

    def reference(self, steps: int) -> list[str]:
        """Return the states after each step, without faults."""
        states = [self.state]
        for _ in range(steps):
            self.session.next_step()()
            states.append(self.seen())
        return states

    def live(self, states: list[str], *, crashes: bool) -> int | None:
        """Do steps until the fault is long gone; return the one that the process was killed in, if it was."""
        for number in range(len(states) - 1):
            self.steps_after += bool(self.shim.failed_call)
            if self.steps_after > STEPS_AFTER:
                self.shim.heal()
                break
            self.state = states[number]
            if not self.tried(states[number], crashes=crashes):
                return number
            if self.shim.failed_call and self.seen() != states[number + 1]:
                raise AssertionError(f"after step {number + 1} the store is not as without a fault ({self.errors})")
        return None

    def tried(self, before: str, *, crashes: bool) -> bool:
        """Do the next step until it is done; return False if it failed and this process is to be killed for it."""
        for _ in range(3):
            chance, made = self.session.chance.getstate(), self.session.made
            try:
                self.session.next_step()()
                return True
            except BullpenError as error:
                self.errors.append(str(error))
            if crashes:
                return False
            self.shim.heal()
            self.session.chance.setstate(chance)
            self.session.made = made
            if self.seen() != before:
                raise AssertionError(f"a step raised, and has changed something: {self.errors}")
        raise AssertionError(f"it does not work again when the fault is gone: {self.errors}")

    def seen(self) -> str:
        """Return the state of the store; a closed one is where it was."""
        if self.session.store is not None:
            self.state = state_of(self.session.store)
        return self.state


def work(
    folder: Path, seed: int, steps: int, shim: Shim, *, error: int, at: int, case: str, states: list[str]
) -> Answer:
    """Live with a fault, or without one to learn the states, or look at what a killed process has left."""
    root = folder / "root"
    if case == "look":
        return look(root / DATABASE, states)
    shutil.rmtree(root, ignore_errors=True)
    root.mkdir()
    shim.watch(root)
    life = FaultySession(root, seed, shim)
    if not states:
        return {"states": life.reference(steps)}
    shim.fail(error, at=at, count=1 if case == "once" else LASTING)
    try:
        number = life.live(states, crashes=case == "until killed")
        if number is not None:
            return {
                "crashed": True,
                "allowed": states[number : number + 2],
                "errors": life.errors,
                "call": shim.failed_call,
            }
        shim.heal()
        if life.session.store is not None:
            life.seen()
            life.session.store.close()
        failure = look(root / DATABASE, [life.state]).get("failure", "")
    except AssertionError as broken:
        failure = str(broken)
    return {"failure": failure, "crashed": False, "errors": life.errors, "call": shim.failed_call}


def look(path: Path, allowed: list[str]) -> Answer:
    """Return what is wrong with a file that somebody else left, if anything."""
    if not path.exists():
        return {} if "missing" in allowed else {"failure": "the file is gone"}
    try:
        with SqliteStore(path) as store:
            if state_of(store) not in allowed:
                return {"failure": "the store is in no state that it should be in"}
            findings = store.fsck()
            return {"failure": str(findings[0]) if findings else goes_on(store)}
    except BullpenError as error:
        return {"failure": f"{type(error).__name__}: {error}"}


def plant(fault: str) -> None:
    """Break the store in this process, to see whether the torture notices."""
    if not fault:
        return
    real = SqliteStore.append

    def append(self: SqliteStore, conversation_id: str, message: ConversationMessage, **more: Any) -> StoredMessage:
        try:
            return real(self, conversation_id, message, **more)
        except StoreError:
            return StoredMessage(sequence=1, message=message, hash=b"")

    setattr(SqliteStore, "append", append)  # noqa: B010


if __name__ == "__main__":
    folder_, seed_, steps_, plant_ = sys.argv[1:]
    plant(plant_)
    shim_ = Shim()
    serve(lambda **request: work(Path(folder_), int(seed_), int(steps_), shim_, **request))
