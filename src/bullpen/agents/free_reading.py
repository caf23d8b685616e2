"""Commands that only read files in a folder: an agent that has no other way to read may run them unasked.

What is not surely harmless is not one of them. That costs a question, and the opposite would cost more.
"""

import os
import re
import shlex

SHELLS = frozenset({"/bin/bash", "/usr/bin/bash", "/bin/sh", "/usr/bin/sh", "/bin/zsh", "/usr/bin/zsh"})
"""By their full names: in its folder an agent may write a program with any name."""
SHELL_OPTIONS = frozenset({"-c", "-lc"})
HARMLESS = frozenset({"cat", "grep", "head", "ls", "nl", "pwd", "tail", "wc"})
"""Programs that can only read, with any options."""
FIND_DOES = ("-delete", "-exec", "-fls", "-fprint", "-ok")
RIPGREP_RUNS = ("--hostname", "--pre", "--search")
"""Beginnings of options with which ripgrep runs other programs."""

LONGEST_COMMAND = 10_000
"""Longer ones are not taken apart: that takes a time that grows with the square of their length."""

# Nothing that a shell replaces, and no quotes inside of quotes. What follows a command may be one more.
_TOKEN = re.compile(
    r""" *(?:(?P<operator>\|\||&&|\||;)|(?P<quiet>2>(?:&1|/dev/null)(?=[ |&;]|$))"""
    r"""|(?P<word>(?:[\w./,:=@%+^-]|'[^'\x00-\x1f]*'|"[^"$`\\!\x00-\x1f]*")+)) *""",
    re.ASCII,
)
_PRINTED_LINES = re.compile(r"\d+(,(\d+|\$))?p")


def only_reads(command: str, folder: str, cwd: str) -> bool:
    """Return whether a command that runs in `cwd` does nothing but read files in the folder."""
    script = _script(command)
    commands = _commands(script) if script else []
    return bool(commands) and is_inside(cwd, folder) and all(_is_harmless(words, folder, cwd) for words in commands)


def is_inside(path: str, folder: str) -> bool:
    """Return whether a path is the folder or in it, as it is written."""
    path = os.path.normpath(path)
    return path == folder or path.startswith(f"{folder.rstrip('/')}/")


def _script(command: str) -> str:
    """Return what a shell is given to run; nothing if the command is not a shell's, or very long."""
    try:
        words = shlex.split(command) if len(command) <= LONGEST_COMMAND else []
    except ValueError:
        return ""
    match words:
        case [shell, option, script] if shell in SHELLS and option in SHELL_OPTIONS:
            return script
        case _:
            return ""


def _commands(script: str) -> list[list[str]]:
    """Return the words of each command; nothing if anything else is in the script."""
    commands: list[list[str]] = [[]]
    position = 0
    while position < len(script):
        token = _TOKEN.match(script, position)
        if token is None:
            return []
        position = token.end()
        if token["operator"]:
            commands.append([])
        elif token["word"]:
            commands[-1] += shlex.split(token["word"])
    return commands


def _is_harmless(words: list[str], folder: str, cwd: str) -> bool:
    match words:
        case ["sed", "-n", lines, *files]:
            does_no_more = bool(_PRINTED_LINES.fullmatch(lines)) and not any(file.startswith("-") for file in files)
        case ["find", *_]:
            does_no_more = not any(word.startswith(FIND_DOES) for word in words)
        case ["rg", *_]:
            does_no_more = not any(word.startswith(RIPGREP_RUNS) or re.match(r"-\w*z", word) for word in words)
        case [program, *_]:
            does_no_more = program in HARMLESS
        case _:
            return False
    return does_no_more and all(_names_nothing_outside(word, folder, cwd) for word in words[1:])


def _names_nothing_outside(word: str, folder: str, cwd: str) -> bool:
    if word.startswith("-"):
        return "/" not in word and ".." not in word
    return is_inside(os.path.join(cwd, word), folder)  # noqa: PTH118
