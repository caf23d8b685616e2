"""A program that asks before everything it does, and writes down what it asked, heard and ran: the evidence.

`python asker.py LOG SEED`. It imports no product. Ids of questions are used again, several questions are open at the
same time, some are asked twice, taken back, or asked after the end. It waits for every answer.
"""

import json
import os
import random
import sys
from typing import Any, NoReturn

COMMANDS = ("pytest -q", "git push", *(f"{word} {number}" for word in ("make", "rm") for number in range(1, 9)))
IDS = ("q1", "q2", "q3", "q4", "q5")


class Asker:
    """One turn."""

    def __init__(self, log: str, seed: str) -> None:
        self._log = os.open(log, os.O_WRONLY | os.O_APPEND | os.O_CREAT)
        self._place = [os.environ["TORTURE_CONVERSATION"], os.environ["TORTURE_TURN"]]
        self._random = random.Random(f"{seed} {self._place}")
        self._count = 0
        self._open: dict[str, tuple[int, str]] = {}
        self._taken_back: set[str] = set()

    def run(self) -> NoReturn:
        self._heard()
        for _ in range(self._random.randint(2, 6)):
            for _ in range(self._random.randint(1, 3)):
                self._ask()
            if self._random.random() < 0.1 and self._open:
                self._take_back()
            while self._open:
                self._hear()
        self._say(end=f"That is all. {self._random.random()}")
        if self._random.random() < 0.2:
            self._say(ask="late", command="rm 1", number=0)
        while True:
            self._heard()

    def _ask(self) -> None:
        free = [name for name in IDS if name not in self._open and name not in self._taken_back]
        if not free:
            return
        question, command = self._random.choice(free), self._random.choice(COMMANDS)
        self._count += 1
        self._open[question] = (self._count, command)
        self._note("asked", self._count, command)
        # Twice in one write: what comes after the answer would be another question with an id that is used again.
        times = 2 if self._random.random() < 0.1 else 1
        self._say(times, ask=question, command=command, number=self._count)

    def _take_back(self) -> None:
        question = self._random.choice([*self._open])
        number, command = self._open.pop(question)
        self._taken_back.add(question)
        self._note("taken back", number, command)
        self._say(back=question)

    def _hear(self) -> None:
        """Hear one answer, and do what it says: nothing but a yes lets anything run."""
        record = self._heard()
        question, verdict = str(record.get("to")), record.get("verdict")
        if question in self._taken_back:
            return
        number, command = self._open.pop(question, (0, ""))
        self._note("heard", number, verdict)
        if verdict == "yes":
            self._note("ran", number, record.get("command") or command)

    def _heard(self) -> dict[str, Any]:
        line = sys.stdin.readline()
        if not line:
            sys.exit(3)
        record: dict[str, Any] = json.loads(line)
        return record

    def _note(self, *what: object) -> None:
        os.write(self._log, json.dumps([*self._place, *what]).encode() + b"\n")

    def _say(self, times: int = 1, **record: object) -> None:
        os.write(1, times * (json.dumps(record).encode() + b"\n"))


if __name__ == "__main__":
    Asker(*sys.argv[1:]).run()
