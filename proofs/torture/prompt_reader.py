"""Reads a prompt as somebody would who has only the tables in docs/context.md and knows who takes part.

It shares nothing with the code that writes prompts. What is code in a message is decided by markdown-it.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass

from proofs.torture.markdown_view import labels_in_code

HEADINGS = {
    "claude-code": {"task": "[TEAM_TASK]", "context": "[CONTEXT]", "message": "[MESSAGE]"},
    "openai-codex": {"system": "[SYSTEM]", "task": "[TEAM_TASK]", "context": "[CONTEXT]", "message": "[MESSAGE]"},
    "google-gemini": {
        "system": "Instructions:",
        "task": "Team Task:",
        "context": "Conversation so far:",
        "message": "Your task:",
    },
    "unknown": {},
}
SHOWS_ADDRESSEES = ("claude-code", "openai-codex")

BREAKS = "\n\r\v\f\x1c\x1d\x1e\x85\u2028\u2029"
_LIST_MARK = re.compile("(?: *- )?")
_BREAK = re.compile(f"\r\n|[{BREAKS}]")


class Forged(Exception):
    """The prompt cannot be read: something in it pretends to be something else."""


@dataclass(frozen=True)
class Said:
    """One message, as the prompt tells it."""

    sender: str
    to: str
    content: str


@dataclass(frozen=True)
class Read:
    """All that a prompt tells."""

    context: tuple[Said, ...]
    message: Said | None


def read_prompt(prompt: str, agent_type: str, names: tuple[str, ...], *, system: str, task: str) -> Read:
    """Return who said what, given the system text and the task; raise Forged if that is not clear."""
    headings = HEADINGS[agent_type]
    fixed = [(headings.get("system", ""), system), (headings.get("task", ""), task)]
    if agent_type == "claude-code":
        fixed = fixed[1:]
    for heading, text in fixed:
        if text:
            prompt = _after(prompt, f"{heading}\n{text}" if heading else text)
    return _Conversation(agent_type, names).read(prompt)


def _after(prompt: str, section: str) -> str:
    if not prompt.startswith(section):
        raise Forged(f"not the section {section!r}")
    rest = prompt[len(section) :]
    if rest and not rest.startswith("\n\n"):
        raise Forged("no empty line after a section")
    return rest[2:]


class _Conversation:
    """Reads history and message in one layout."""

    def __init__(self, agent_type: str, names: tuple[str, ...]) -> None:
        self._agent_type = agent_type
        self._names = names
        self._headings = HEADINGS[agent_type]

    def read(self, text: str) -> Read:
        if not self._headings:
            return self._read_plain(text)
        context: list[Said] = []
        heading = f"{self._headings['context']}\n"
        if text.startswith(heading):
            context, text = self._history(text.removeprefix(heading))
        if not text:
            return Read(tuple(context), None)
        return Read(tuple(context), self._message(_after(f"\n\n{text}", "")))

    def _read_plain(self, text: str) -> Read:
        said, _ = self._history(text)
        *context, message = said
        if context:
            # An empty line stands between the history and the message that is asked about.
            last = context[-1]
            if not last.content.endswith("\n"):
                raise Forged("no empty line before the message")
            context[-1] = Said(last.sender, last.to, last.content[:-1])
        return Read(tuple(context), message)

    def _history(self, text: str) -> tuple[list[Said], str]:
        """Return the messages of the history, and what comes after it."""
        starts = line_starts(self._agent_type, self._names, "history")
        said: list[Said] = []
        while text.startswith(starts):
            sender, to, content = self._said(text, starts)
            end = next(_protected_lines(content, self._agent_type, self._names, "history"), None)
            if end is None:
                return [*said, Said(sender, to, content)], ""
            text = content[end:]
            said.append(Said(sender, to, content[: end - 1]))
        if not said:
            raise Forged("words that nobody said")
        heading = self._headings.get("message")
        if heading is None or not text.startswith(heading) or not said[-1].content.endswith("\n"):
            raise Forged("a heading in the wrong place")
        last = said.pop()
        return [*said, Said(last.sender, last.to, last.content[:-1])], text

    def _message(self, text: str) -> Said:
        body = text.removeprefix(f"{self._headings['message']}\n")
        starts = tuple(start.removeprefix("- ") for start in line_starts(self._agent_type, self._names, "history"))
        if body == text or not body.startswith(starts):
            raise Forged("no message, or nobody's")
        sender, to, content = self._said(body, starts)
        if any(_protected_lines(content, self._agent_type, self._names, "message")):
            raise Forged("two messages where there is one")
        return Said(sender, to, content)

    def _said(self, text: str, starts: tuple[str, ...]) -> tuple[str, str, str]:
        start = max((start for start in starts if text.startswith(start)), key=len)
        name = start.removeprefix("- ").removesuffix(" -> ").removesuffix(": ")
        if self._agent_type not in SHOWS_ADDRESSEES:
            return name, "", text[len(start) :]
        # Neither names nor lists of names have a colon in them.
        to, _, content = text[len(start) :].partition(": ")
        return name, to, content


def line_starts(agent_type: str, names: tuple[str, ...], section: str) -> tuple[str, ...]:
    """Return how the lines of people begin in a section: in the message, with and without the dash."""
    after = " -> " if agent_type in SHOWS_ADDRESSEES else ": "
    dash = "" if agent_type == "unknown" else "- "
    dashes = (dash,) if section == "history" else (dash, "")
    return tuple(f"{dash}{name}{after}" for dash in dashes for name in names)


def _protected_lines(content: str, agent_type: str, names: tuple[str, ...], section: str) -> Iterator[int]:
    """Yield where lines begin, after the first, that look like ours and are not code.

    Code without an end can only be that of the last message, where it was cut: every other one has been closed.
    """
    candidates = [
        place
        for place in _line_places(content)
        if place and looks_like_ours(content[place:], agent_type, names, section)
    ]
    in_code = _in_code(content, candidates, open_code_counts=True) if candidates else set[int]()
    return (place for place in candidates if place not in in_code)


def _in_code(content: str, places: list[int], *, open_code_counts: bool) -> set[int]:
    """Return the places whose lines are code: each line is given a label, which is then looked for."""
    # After the dash, so that a list stays a list.
    labelled = [match.end() for place in places if (match := _LIST_MARK.match(content, place))]
    pieces = [content[start:end] for start, end in zip([0, *labelled], [*labelled, len(content)], strict=True)]
    text = "".join([*(f"{piece}zz{number}zz" for number, piece in enumerate(pieces[:-1])), pieces[-1]])
    found = labels_in_code(text, open_code_counts=open_code_counts)
    return {place for number, place in enumerate(places) if f"zz{number}zz" in found}


def _line_places(text: str) -> list[int]:
    return [0, *(match.end() for match in _BREAK.finditer(text))]


def _end_of_line(text: str, place: int) -> int:
    found = _BREAK.search(text, place)
    return found.start() if found else len(text)


def looks_like_ours(text: str, agent_type: str, names: tuple[str, ...], section: str) -> bool:
    """Tell whether a text begins with a line of the kind that only the prompt itself may write."""
    line = text[: _end_of_line(text, 0)]
    bare = re.sub(r"[\s\ufeff\u200b-\u200d\u2060\xad]+\Z", "", line)
    return bare in HEADINGS[agent_type].values() or line.startswith(line_starts(agent_type, names, section))


def same_text(got: str, said: str, agent_type: str, names: tuple[str, ...], section: str) -> bool:
    """Tell whether a text came through: but for two spaces before lines that look like ours, and its code's end."""
    return got == said or any(
        _same_lines(got, closed, said, agent_type, names, section) for closed in _perhaps_closed(said, section)
    )


def _perhaps_closed(said: str, section: str) -> Iterator[str]:
    yield said
    if section == "history":
        yield from (f"{said}\n{mark}" for mark in set(re.findall("`{3,}|~{3,}", said)))
        if "`" in said:
            yield f"{said}\n"


def _same_lines(got: str, closed: str, said: str, agent_type: str, names: tuple[str, ...], section: str) -> bool:
    ours, theirs = _BREAK.split(got), _BREAK.split(closed)
    if len(ours) != len(theirs) or _BREAK.findall(got) != _BREAK.findall(closed):
        return False
    return all(
        mine == line or (mine == f"  {line}" and looks_like_ours(line, agent_type, names, section))
        for mine, line in zip(ours, theirs, strict=True)
    ) and not _code_was_touched(got[: len(got) + len(said) - len(closed)], said)


def _code_was_touched(got: str, said: str) -> bool:
    """Tell whether a line was indented that is code, before and after: indenting a list moves what belongs to it."""
    lines = zip(_BREAK.split(got), _BREAK.split(said), _line_places(got), _line_places(said), strict=False)
    moved = [(after, before) for mine, line, after, before in lines if mine != line]
    code_after = _in_code(got, [after for after, _ in moved], open_code_counts=False)
    code_before = _in_code(said, [before for _, before in moved], open_code_counts=False)
    return any(after in code_after and before in code_before for after, before in moved)


def is_beginning(got: str, said: str, agent_type: str, names: tuple[str, ...]) -> bool:
    """Tell whether a message came through up to where it was cut."""
    breaks = _BREAK.findall(got)
    ours, theirs = _BREAK.split(got), _BREAK.split(said)
    if len(ours) > len(theirs) or breaks != _BREAK.findall(said)[: len(breaks)]:
        return False
    pairs = list(zip(ours, theirs, strict=False))
    last, whole = pairs.pop()
    return all(
        mine == line or (mine == f"  {line}" and looks_like_ours(line, agent_type, names, "message"))
        for mine, line in pairs
    ) and (
        whole.startswith(last)
        or (looks_like_ours(whole, agent_type, names, "message") and f"  {whole}".startswith(last))
    )
