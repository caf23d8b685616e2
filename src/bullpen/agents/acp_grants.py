"""What got a yes of an agent that speaks ACP, call by call, and whether what it reports as done is exactly that."""

import os.path
from collections.abc import Mapping
from typing import Any

from msgspec import Struct

from bullpen.agents.acp_records import ToolCall
from bullpen.agents.gate import HARMLESS_DETAILS
from bullpen.turn_events import ApprovalAsked

EXIT_CODES = ("exit_code", "exitCode", "exit", "returncode", "return_code")


class Asked(Struct, frozen=True):
    """What a question was about, as it was then: its call may learn more before the answer."""

    call: str
    question: ApprovalAsked
    written: tuple[tuple[str, str], ...] = ()
    """Files and their new texts."""


class Grants:
    """The answers of one turn, by the ids of calls. A yes holds for one use of an id."""

    def __init__(self, folder: str) -> None:
        self._folder = folder
        self._granted: dict[str, list[Asked]] = {}
        self._ended: set[str] = set()
        self._refused: set[str] = set()
        self._refused_commands: set[str] = set()

    def grant(self, asked: Asked) -> None:
        """Note a yes."""
        self._granted.setdefault(asked.call, []).append(asked)

    def refuse(self, asked: Asked) -> None:
        """Note a no."""
        self._refused.add(asked.call)
        self._refused_commands.add(asked.question.command)

    def begin(self, call: str) -> None:
        """Forget what an id got, if the call that had it is over: another one begins."""
        if call in self._ended:
            self._ended.discard(call)
            self._granted.pop(call, None)

    def end(self, call: str) -> None:
        """Note that a call is over. It may be reported once more."""
        if call in self._granted:
            self._ended.add(call)

    def is_refused(self, call: str) -> bool:
        """Return whether a call got a no."""
        return call in self._refused

    def is_refused_command(self, title: str) -> bool:
        """Return whether this is a command that got a no, under any id."""
        return bool(title) and title in self._refused_commands

    def covers(self, call: ToolCall, done: ApprovalAsked) -> bool:
        """Return whether what a call has done is what got a yes under its id."""
        return any(self._is_covered(one, call, done) for one in self._granted.get(call.id, ()))

    def _is_covered(self, asked: Asked, call: ToolCall, done: ApprovalAsked) -> bool:
        question = asked.question
        if done.kind == "edit":
            is_shown = question.kind == "edit" or bool(question.diff)
            is_shown &= done.details.get("command") == question.details.get("command")
            return is_shown and self._covers_paths(question, done) and self._covers_texts(asked, call)
        if question.kind != "command":
            # A tool's own word, shown to people as it was given.
            return call.kind != "execute" and question.details.get("command") == call.given.get("command")
        is_there = not call.folders or done.folder == question.folder
        more = {name: value for name, value in done.details.items() if name not in HARMLESS_DETAILS}
        is_same = all(question.details.get(name) == value for name, value in more.items())
        return done.command == question.command and is_there and is_same

    def _covers_paths(self, question: ApprovalAsked, done: ApprovalAsked) -> bool:
        if not question.paths:
            # Some tell their paths only with what else is given.
            told = [value for value in question.details.values() if isinstance(value, str)]
            return all(any(path in text for text in told) for path in done.paths)
        return {*map(self._real, done.paths)} <= {*map(self._real, question.paths)}

    def _covers_texts(self, asked: Asked, call: ToolCall) -> bool:
        """Return whether each text is one that was shown, or, where it tells no whole files, a part of it."""
        shown: dict[str, list[str]] = {}
        for path, new in asked.written:
            shown.setdefault(self._real(path), []).append(_lines(new))
        texts = ((shown.get(self._real(path)), _lines(new)) for path, new in call.written)
        return all(whole is None or any(new in one for one in whole) for whole, new in texts)

    def _real(self, path: str) -> str:
        return os.path.realpath(os.path.join(self._folder, path))  # noqa: PTH118


def is_done(update: Mapping[str, Any]) -> bool:
    """Return whether a record tells that its call has run: it is completed, or has an output or an exit code."""
    status, output = update.get("status"), update.get("rawOutput")
    if status == "failed":
        # Why it was not done is told there, too.
        return isinstance(output, dict) and (_has_exit_code(output) or bool(output.get("output")))
    return status == "completed" or bool(output)


def has_text(update: Mapping[str, Any]) -> bool:
    """Return whether a record of a call that is not over has a text: its output, if the call may run."""
    content = update.get("content")
    blocks = content if isinstance(content, list) else []
    is_running = update.get("status") in (None, "in_progress")
    return is_running and any(isinstance(block, dict) and block.get("type") != "diff" for block in blocks)


def _has_exit_code(output: Mapping[str, Any]) -> bool:
    inside = output.get("metadata")
    places = (output, inside) if isinstance(inside, dict) else (output,)
    return any(type(place.get(name)) is int for place in places for name in EXIT_CODES)


def _lines(text: str) -> str:
    return "\n".join(text.splitlines())
