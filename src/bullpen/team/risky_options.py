"""Whether a command of a program that people often allow does more than a rule says: it runs another, or writes.

A rule that does not name such an option does not cover it: `git diff` is to look at changes, and
`git diff --output=FILE` is to write a file. Who wants that allowed says so in the rule, or says yes when it is asked.
"""

import re
from collections.abc import Iterator, Sequence

from bullpen.team.limited_programs import OTHER_NAMES, PROGRAMS, SED, Program

RUNNERS = frozenset({"-m", "exec", "npx", "run", "uvx"})
"""Words after which the name of a program comes: `uv run pytest`."""
SED_PRINTS = re.compile(r"(?:\d+|\$|/[^/\\]*/)?(?:,(?:\d+|\$|/[^/\\]*/))?[pdq=]")
SED_REPLACES = re.compile(r"(?:\d+(?:,(?:\d+|\$))?)?s([/|,#:@])(?:(?!\1)[^\\\n])*\1(?:(?!\1)[^\\\n])*\1[gpiI\d]*")
"""The scripts of sed that only print: another one may run a command or write a file."""


def is_risky(words: Sequence[str], count: int) -> bool:
    """Return whether a command does more than a rule says that names this many of its words."""
    return any(
        _does_more(program, words[place + 1 :], max(0, count - place - 1)) for place, program in _programs(words, count)
    )


def has_limits(words: Sequence[str]) -> bool:
    """Return whether a command is of a program with such options."""
    return any(_programs(words, len(words)))


def without_globals(words: Sequence[str]) -> list[str]:
    """Return a command without the options before its subcommand that change nothing."""
    program = _program(words[0]) if words else None
    if program is None:
        return list(words)
    harmless = program.globals.split()
    first = next((place for place, word in enumerate(words[1:], 1) if word not in harmless), len(words))
    return [words[0], *words[first:]]


def _programs(words: Sequence[str], count: int) -> Iterator[tuple[int, Program]]:
    """Yield where such a program is: at the beginning, after a word that runs what follows, and where a rule says."""
    is_next, inner = True, 0
    for place, word in enumerate(words):
        is_one = place in (0, inner) or place < count or (is_next and not word.startswith("-"))
        program = _program(word) if is_one else None
        if program is not None:
            yield place, program
            inner = place + 1 + _end(program, words[place + 1 :])
        is_next = word in RUNNERS or (is_next and word.startswith("-"))


def _program(word: str) -> Program | None:
    name = word.rpartition("/")[2]
    return PROGRAMS.get(OTHER_NAMES.get(name, name))


def _does_more(program: Program, words: Sequence[str], named: int) -> bool:
    """Return whether the words after a program's name do, of which a rule names the first ones."""
    if program.subcommands and not _is_usual_subcommand(program, words, named):
        return True
    own = list(words[: _end(program, words)])
    if program.has_bundle and not named and own and not own[0].startswith("-"):
        own[0] = f"-{own[0]}"
    if program is SED and not _only_prints(own[named:]):
        return True
    risky = [*program.options.split(), *(one for word in words for one in program.more.get(word, "").split())]
    pattern = re.compile(program.words or r"(?!)")
    return any(
        _is_one_of(word, program, risky) or not _is_usual(word, program) or pattern.match(word) for word in own[named:]
    )


def _is_usual_subcommand(program: Program, words: Sequence[str], named: int) -> bool:
    if named == 0 and words and words[0] not in program.subcommands.split():
        return False
    group = program.groups.get(words[0]) if words and named <= 1 else None
    return group is None or len(words) == 1 or words[1] in group.split()


def _end(program: Program, words: Sequence[str]) -> int:
    """Return how many of the words are for the program itself."""
    before = ""
    is_run = program.runs and words[:1] == ["run"]
    for place, word in enumerate(words):
        if program.ends_options and word == "--" and not before.startswith("-"):
            return place
        if is_run and place and not word.startswith("-") and not _has_value(before, program):
            return place
        # One that is not known may have a value.
        is_run = is_run and _is_usual(word, program)
        before = word
    return len(words)


def _has_value(option: str, program: Program) -> bool:
    """Return whether the word after an option is its value, also after the last one of several in one word."""
    names = program.usual.split()
    return option.startswith("-") and (f"{option}=" in names or f"-{option[-1]}=" in names)


def _is_usual(word: str, program: Program) -> bool:
    names = program.usual.split()
    if not names or not word.startswith("-") or word == "--":
        return True
    option = word.partition("=")[0]
    if program.is_exact:
        return _in_full(option) in names
    if option.startswith("--"):
        return option in names or f"{option}=" in names
    for letter in word[1:]:
        if f"-{letter}=" in names:
            return True
        if f"-{letter}" not in names:
            return False
    return True


def _is_one_of(word: str, program: Program, risky: Sequence[str]) -> bool:
    option = word.partition("=")[0]
    if not option.startswith("-") or word == "--":
        return word in risky
    if program.is_exact:
        return _in_full(option) in risky
    if option.startswith("--"):
        # Many programs take the beginning of an option for the whole.
        return any(name.startswith(option) for name in risky)
    # A bundle of short options, or one with its value.
    return any(len(name) == 2 and name[1] in option[1:] for name in risky if name.startswith("-"))


def _in_full(option: str) -> str:
    return f"-{option.lstrip('-').removeprefix('test.')}"


def _only_prints(words: Sequence[str]) -> bool:
    """Return whether the script of a call of sed is one of the harmless ones."""
    scripts: list[str] = []
    expects = False
    for word in words:
        if expects or not (word.startswith("-") or scripts):
            scripts.append(word)
        expects = word in ("-e", "--expression")
        # With others in one word, or with the script itself.
        if not expects and re.match(r"-[^-]*e|--e", word):
            return False
    return all(SED_PRINTS.fullmatch(script) or SED_REPLACES.fullmatch(script) for script in scripts)
