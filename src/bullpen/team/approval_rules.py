"""Rules on what an agent may do unasked, and what never: commands and tools, in a small grammar.

A rule is a command in plain words, or the name of a tool. `pytest` is that command, alone and with any arguments. A
star at the end is any other ending: `git diff*`, `npm run test:*`. A command that a shell would take apart, or
put something into, is never allowed by a rule: a person is asked. What is denied is looked for anywhere in a command,
so it may deny more than was meant.
"""

import re
import shlex
from collections.abc import Iterable, Sequence
from fnmatch import fnmatchcase

from bullpen.turn_events import OR, ApprovalAsked

SHELLS = frozenset({"bash", "dash", "sh", "zsh"})
SHELL_FOLDERS = frozenset({"", "/bin/", "/usr/bin/", "/usr/local/bin/", "/opt/homebrew/bin/"})
"""Where shells are. Elsewhere, an agent may have written a program of that name."""
SHELL_OPTIONS = frozenset({"-c", "-lc", "-cl"})
LONGEST_COMMAND = 10_000
HARMLESS = frozenset({"description", "is_background", "run_in_background", "timeout", "title"})
"""What may be said besides a command that a rule allows: nothing that makes it another one, or runs it elsewhere."""
MORE_THAN_ASKED = frozenset({"dangerouslyDisableSandbox", "grantRoot"})
"""What widens what an agent may do from then on."""
# Also in quotes: which of them a shell reads there depends on the quotes.
_READ_BY_SHELLS = re.compile(r"[`$;&|<>\\(){}!\r\n\0]")
_WORD = re.compile(r"[^\s;&|<>()`{}$'\"\\]+")


def allowing(rules: Iterable[str], asked: ApprovalAsked) -> str:
    """Return the first rule that allows what is asked for; nothing if none does."""
    if asked.kind == "question":
        return ""
    if asked.kind == "command":
        words = _words_of_one_command(asked.command) if set(asked.details) <= HARMLESS else []
        return next((rule for rule in rules if words and _begins(words, rule)), "")
    if not MORE_THAN_ASKED.isdisjoint(asked.details):
        return ""
    return next((rule for rule in rules if all(fnmatchcase(tool, rule) for tool in _tools(asked))), "")


def denying(rules: Iterable[str], asked: ApprovalAsked) -> str:
    """Return the first rule that forbids what is asked for; nothing if none does."""
    if asked.kind == "question":
        return ""
    if asked.kind == "command":
        readings = _readings(asked.command)
        if rule := next((rule for rule in rules if any(_occurs(words, rule) for words in readings)), ""):
            return rule
    return next((rule for rule in rules if any(fnmatchcase(tool, rule) for tool in _tools(asked))), "")


def is_like(asked: ApprovalAsked, before: ApprovalAsked) -> bool:
    """Return whether an answer to one question is one to another: it is asked for exactly the same."""
    return asked.kind != "question" and _subject(asked) == _subject(before)


def _subject(asked: ApprovalAsked) -> tuple[object, ...]:
    # Not the diff: who lets a file be edited does not mean one edit. Not why: an agent may say anything there.
    return asked.kind, asked.tool, asked.folder, asked.command, asked.paths, asked.details


def _tools(asked: ApprovalAsked) -> list[str]:
    """Return the tools that it may be about, if the CLI does not say which of several it is."""
    return asked.tool.split(OR)


def _words_of_one_command(command: str) -> list[str]:
    """Return the words of a command; nothing if it is not one plain command."""
    words = _split(_script(command))
    is_plain = _READ_BY_SHELLS.search(_script(command)) is None
    return words if is_plain else []


def _script(command: str) -> str:
    """Return what a shell is told to run, if the command is nothing but that."""
    match _split(command):
        case [shell, option, script] if _is_shell(shell) and option in SHELL_OPTIONS:
            return script
        case _:
            return command


def _is_shell(program: str) -> bool:
    folder, separator, name = program.rpartition("/")
    return name in SHELLS and folder + separator in SHELL_FOLDERS


def _readings(command: str) -> list[list[str]]:
    """Return the words of a command as a shell may read them, with its quotes and without them."""
    script = _script(command)
    return [_WORD.findall(script), _split(script), _WORD.findall(re.sub(r"['\"\\]", "", script))]


def _split(command: str) -> list[str]:
    # To take very long ones apart takes a time that grows with the square of their length. No rule allows them.
    if len(command) > LONGEST_COMMAND:
        return []
    try:
        return shlex.split(command)
    except ValueError:
        return []


def _begins(words: Sequence[str], rule: str) -> bool:
    """Return whether a command begins as a rule says."""
    *first, last = rule.removesuffix("*").split(" ")
    if not rule.endswith("*"):
        return list(words[: len(first) + 1]) == [*first, last]
    if list(words[: len(first)]) != first:
        return False
    return last == "" or (len(words) > len(first) and words[len(first)].startswith(last))


def _occurs(words: Sequence[str], rule: str) -> bool:
    """Return whether a rule's words follow each other anywhere; a program may be named with its folder."""
    length = rule.count(" ") + 1
    for start in range(len(words)):
        run = words[start : start + length]
        if _begins(run, rule) or _begins([run[0].rpartition("/")[2], *run[1:]], rule):
            return True
    return False
