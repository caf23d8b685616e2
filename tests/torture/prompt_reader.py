"""Reads a prompt as somebody would who has only the table in docs/context.md and knows who takes part.

It shares nothing with the code that writes prompts.
"""

import re
from dataclasses import dataclass

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
HAS_DASH = ("claude-code", "openai-codex", "google-gemini")


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

    before: str
    """System text and task."""
    context: tuple[Said, ...]
    message: Said | None


def read_prompt(prompt: str, agent_type: str, names: tuple[str, ...]) -> Read:
    """Return who said what; raise Forged if that is not clear."""
    if agent_type == "unknown":
        return _read_plain(prompt, names)
    parts = _sections(prompt, HEADINGS[agent_type])
    before = "\n\n".join(parts[key] for key in ("system", "task") if key in parts)
    context = _messages(parts["context"], agent_type, names, dash="- ") if "context" in parts else ()
    message = None
    if "message" in parts:
        (message,) = _messages(parts["message"], agent_type, names, dash="")
    return Read(before, context, message)


def _read_plain(prompt: str, names: tuple[str, ...]) -> Read:
    starts = _starts(prompt, "unknown", names, dash="")
    if not starts:
        raise Forged("nobody speaks")
    before = prompt[: starts[0]]
    said = _messages(prompt[starts[0] :], "unknown", names, dash="")
    *context, message = said
    if context:
        # An empty line stands between the history and the message that is asked about.
        last = context[-1]
        if not last.content.endswith("\n"):
            raise Forged("no empty line before the message")
        context[-1] = Said(last.sender, last.to, last.content[:-1])
    return Read(before.removesuffix("\n\n"), tuple(context), message)


def _sections(prompt: str, headings: dict[str, str]) -> dict[str, str]:
    found: list[tuple[str, int, int]] = []
    position = 0
    for line in prompt.splitlines(keepends=True):
        bare = line.rstrip("\n\r\v\f\x1c\x1d\x1e\x85\u2028\u2029").rstrip(" \t")
        found += [(key, position, position + len(line)) for key, heading in headings.items() if bare == heading]
        position += len(line)
    order = [key for key, _, _ in found]
    if order != [key for key in headings if key in order] or (found and found[0][1] != 0):
        raise Forged(f"sections {order}")
    ends = [start for _, start, _ in found[1:]] + [len(prompt)]
    parts = {}
    for (key, _, body), end in zip(found, ends, strict=True):
        text = prompt[body:end]
        parts[key] = text if end == len(prompt) else text.removesuffix("\n\n")
    return parts


def _messages(text: str, agent_type: str, names: tuple[str, ...], dash: str) -> tuple[Said, ...]:
    starts = _starts(text, agent_type, names, dash)
    if not starts or starts[0] != 0:
        raise Forged("words that nobody said")
    if agent_type != "unknown" and not dash and len(starts) != 1:
        raise Forged("two messages where there is one")
    ends = [start - 1 for start in starts[1:]] + [len(text)]
    return tuple(_said(text[start:end], agent_type, names, dash) for start, end in zip(starts, ends, strict=True))


def _starts(text: str, agent_type: str, names: tuple[str, ...], dash: str) -> list[int]:
    """Return where a line begins as one of the team's would."""
    behind = " -> " if agent_type in SHOWS_ADDRESSEES else ": "
    starts, position = [], 0
    beginnings = tuple(f"{dash}{name}{behind}" for name in names)
    for line in text.splitlines(keepends=True):
        if line.startswith(beginnings):
            starts.append(position)
        position += len(line)
    return starts


def _said(text: str, agent_type: str, names: tuple[str, ...], dash: str) -> Said:
    text = text.removeprefix(dash)
    if agent_type not in SHOWS_ADDRESSEES:
        sender, _, content = text.partition(": ")
        return Said(sender, "", content)
    # Neither names nor lists of names have a colon in them.
    head, _, content = text.partition(": ")
    for name in sorted(names, key=len, reverse=True):
        if head.startswith(f"{name} -> "):
            return Said(name, head.removeprefix(f"{name} -> "), content)
    raise Forged(f"nobody is called {head!r}")


_BREAKS = re.compile("[\n\r\v\f\x1c\x1d\x1e\x85\u2028\u2029]")


def same_text(got: str, said: str, agent_type: str, names: tuple[str, ...]) -> bool:
    """Tell whether a text came through, but for the two spaces before lines that look like ours."""
    if got == said:
        return True
    ours, theirs = _BREAKS.split(got), _BREAKS.split(said)
    if len(ours) != len(theirs) or _BREAKS.findall(got) != _BREAKS.findall(said):
        return False
    return all(
        mine == line or (mine == f"  {line}" and _looks_like_ours(line, agent_type, names))
        for mine, line in zip(ours, theirs, strict=True)
    )


def is_beginning(got: str, said: str, agent_type: str, names: tuple[str, ...]) -> bool:
    """Tell whether a text came through up to where it was cut."""
    breaks = _BREAKS.findall(got)
    ours, theirs = _BREAKS.split(got), _BREAKS.split(said)
    if len(ours) > len(theirs) or breaks != _BREAKS.findall(said)[: len(breaks)]:
        return False
    last, whole = ours.pop(), theirs[len(ours)]
    return (
        whole.startswith(last) or (_looks_like_ours(whole, agent_type, names) and f"  {whole}".startswith(last))
    ) and same_text("\n".join(ours), "\n".join(theirs[: len(ours)]), agent_type, names)


def _looks_like_ours(line: str, agent_type: str, names: tuple[str, ...]) -> bool:
    behind = " -> " if agent_type in SHOWS_ADDRESSEES else ": "
    return line.rstrip(" \t") in HEADINGS[agent_type].values() or line.removeprefix("- ").startswith(
        tuple(f"{name}{behind}" for name in names)
    )
