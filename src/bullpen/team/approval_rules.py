"""Rules on what an agent may do unasked, and what never: commands and tools, in a small grammar.

A rule is a command in plain words, or the name of a tool. `pytest` is that command, alone and with any arguments. A
star at the end is any other word there, `git *`, or the rest of a word after a sign: `npm run test:*`. It never
continues a name: `git diff*` is `git diff`. Options that run or write something are not covered by a rule that does not
name them. Never allowed by a rule is a command in another folder than the agent's own, and one that a shell would take
apart, or put something into, such as the names of files for a star: a person is asked. What is denied is looked for
anywhere in a command, so it may deny more than was meant.
"""

import re
import shlex
from collections.abc import Iterable, Sequence
from fnmatch import fnmatchcase

import msgspec

from bullpen.team.risky_options import has_limits, is_risky, without_globals
from bullpen.turn_events import LEAVES_SANDBOX, OR, ApprovalAsked

SHELLS = frozenset({"bash", "dash", "sh", "zsh"})
SHELL_FOLDERS = frozenset({"", "/bin/", "/usr/bin/", "/usr/local/bin/", "/opt/homebrew/bin/"})
"""Where shells are. Elsewhere, an agent may have written a program of that name."""
SHELL_OPTIONS = frozenset({"-c", "-lc", "-cl"})
LONGEST_COMMAND = 10_000
HARMLESS = frozenset({"description", "is_background", "run_in_background", "timeout", "title"})
"""What may be said besides a command that a rule allows: nothing that makes it another one, or runs it elsewhere."""
MORE_THAN_ASKED = frozenset({"dangerouslyDisableSandbox", "grantRoot", LEAVES_SANDBOX})
"""What widens what an agent may do from then on."""
# Also in quotes: which of them a shell reads there depends on the quotes.
_READ_BY_SHELLS = re.compile(r"[`$;&|<>\\(){}!\r\n\0]")
_QUOTED = re.compile(r"'[^']*'|\"[^\"]*\"")
# Without quotes: names of files, which an agent chooses (one may look like an option), and folders of people.
_REPLACED_BY_SHELLS = re.compile(r"[*?\[]|(?:\A|\s)[~=]")
_WORD = re.compile(r"[^\s;&|<>()`{}$'\"\\]+")


def allowing(rules: Iterable[str], asked: ApprovalAsked) -> str:
    """Return the first rule that allows what is asked for; nothing if none does."""
    if asked.kind == "question":
        return ""
    if asked.kind == "command":
        is_plain = set(asked.details) <= HARMLESS and not asked.elsewhere
        words = _words_of_one_command(asked.command) if is_plain else []
        return next((rule for rule in rules if words and _covers(words, rule)), "")
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


def narrowed(rule: str) -> str:
    """Return what a rule meant in earlier versions and what it means now, if that is less; nothing if it is not."""
    words = rule.removesuffix("*").split()
    ends_in_name = rule.endswith("*") and rule[-2:-1].isalnum() and "__" not in rule
    has_fewer_options = has_limits(words)
    if not words or not (ends_in_name or has_fewer_options):
        return ""
    named = " ".join(words)
    before = f"any command that begins with {named!r}, also within a word" if ends_in_name else f"{named!r}"
    options = ", without options or subcommands that run or write something" if has_fewer_options else ""
    return f"{rule!r} allowed {before}, with any options; now it allows {named!r} as whole words{options}"


def is_like(asked: ApprovalAsked, before: ApprovalAsked) -> bool:
    """Return whether an answer to one question is one to another: it is asked for exactly the same."""
    return asked.kind != "question" and _subject(asked) == _subject(before)


def _subject(asked: ApprovalAsked) -> tuple[object, ...]:
    # All that was shown, and not why: an agent may say anything there.
    details = msgspec.json.encode(asked.details, order="sorted")
    return asked.kind, asked.tool, asked.folder, asked.command, asked.paths, asked.diff, details


def _tools(asked: ApprovalAsked) -> list[str]:
    """Return the tools that it may be about, if the CLI does not say which of several it is."""
    return asked.tool.split(OR)


def _words_of_one_command(command: str) -> list[str]:
    """Return the words of a command; nothing if it is not one plain command."""
    script = _script(command)
    words = _split(script)
    is_plain = not (_READ_BY_SHELLS.search(script) or _REPLACED_BY_SHELLS.search(_QUOTED.sub("", script)))
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


def _covers(words: Sequence[str], rule: str) -> bool:
    """Return whether a command begins as a rule says, and does no more than that."""
    seen = without_globals(words)
    count = _begins(seen, rule)
    return bool(count) and not is_risky(seen, count)


def _begins(words: Sequence[str], rule: str) -> int:
    """Return how many words of a command a rule names; 0 if the command begins in another way."""
    *first, last = rule.removesuffix("*").split(" ")
    if list(words[: len(first)]) != first:
        return 0
    if last == "":
        return len(first)
    if len(words) == len(first):
        return 0
    word = words[len(first)]
    is_same = word.startswith(last) if rule.endswith("*") and not last[-1].isalnum() else word == last
    return len(first) + 1 if is_same else 0


def _occurs(words: Sequence[str], rule: str) -> bool:
    """Return whether a rule's words come one after the other anywhere, with options and their values between them.

    A program may be named with its folder.
    """
    named = rule.removesuffix("*").split() or [""]
    wanted = [*named[:-1], named[-1] + ("*" if rule.endswith("*") else "")]
    begun: set[int] = set()  # how many of its words have come, for each place where it may have begun
    before = ""
    for word in words:
        may_lie_between = word.startswith("-") or before.startswith("-")
        continued = {count + 1 for count in begun if _begins([word], wanted[count])}
        if may_lie_between:
            continued |= {count for count in begun if not _begins([word], wanted[count])}
        if _begins([word.rpartition("/")[2]], wanted[0]):
            continued.add(1)
        if len(wanted) in continued:
            return True
        begun, before = continued, word
    return False
