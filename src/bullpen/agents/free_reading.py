"""Commands that only read files in a folder, and so may run unasked: the same ones for every CLI.

What is not surely harmless is not one of them. That costs a question, and the opposite would cost more.
"""

import os
import re
import shlex
import shutil

from bullpen.config import program_path
from bullpen.real_paths import real_path

SHELLS = frozenset({"/bin/bash", "/usr/bin/bash", "/bin/sh", "/usr/bin/sh", "/bin/zsh", "/usr/bin/zsh"})
"""By their full names: in its folder an agent may write a program with any name."""
SHELL_OPTIONS = frozenset({"-c", "-lc"})
HARMLESS = frozenset({"cat", "find", "grep", "head", "ls", "nl", "pwd", "rg", "tail", "wc"})
"""Programs that only read, but for the options below."""
NOT_WITH = {
    # What runs or writes something.
    "find": re.compile(r"-(-|delete|exec|fls|fprint|ok|files0|follow|xtype|\w*[LH])"),
    # What runs other programs, and reads where links lead.
    "rg": re.compile(r"--(hostname|pre|search|follow)|-[^-]*[zL]"),
    # What reads where links lead: with the last two, on macOS.
    "grep": re.compile(r"--d|-[^-]*[RdDSO]"),
    "ls": re.compile(r"--de|-[^-]*[LH]"),
    # What reads a file that comes later, wherever a link leads by then.
    "tail": re.compile(r"--[fr]|-[^-]*[fF]"),
    # What reads files that another file names.
    "wc": re.compile(r"--f"),
}
"""How options begin with which a program does more than read the files of the folder that it is given."""

LONGEST_COMMAND = 10_000
"""Longer ones are not taken apart: that takes a time that grows with the square of their length."""
LONGEST_OPTION = 255
"""As long as the name of a file can be."""

# Nothing that a shell replaces, and no quotes inside of quotes. What follows a command may be one more.
_TOKEN = re.compile(
    r""" *(?:(?P<operator>\|\||&&|\||;)|(?P<quiet>2>(?:&1|/dev/null)(?=[ |&;]|$))"""
    r"""|(?P<word>(?:[\w./,:=@%+^-]|'[^'\x00-\x1f]*'|"[^"$`\\!\x00-\x1f]*")+)) *""",
    re.ASCII,
)
_PRINTED_LINES = re.compile(r"\d+(,(\d+|\$))?p")


def only_reads(command: str, folder: str, cwd: str) -> bool:
    """Return whether a shell command that runs in `cwd` does nothing but read files in the folder."""
    commands = _commands(_script(command))
    return bool(commands) and is_inside(cwd, folder) and all(_is_harmless(words, folder, cwd) for words in commands)


def is_inside(path: str, folder: str) -> bool:
    """Return whether a path leads to the folder or into it: links are followed."""
    if not path.startswith("/") or not folder.startswith("/"):
        return False
    try:
        root, real = real_path(folder), real_path(path)
    except ValueError:
        return False
    return os.path.commonpath([root, real]) == root


def _script(command: str) -> str:
    """Return what a shell runs: the command, or what a shell in it is given; nothing if it is very long."""
    if len(command) > LONGEST_COMMAND:
        return ""
    try:
        words = shlex.split(command)
    except ValueError:
        return ""
    match words:
        case [shell, option, script] if shell in SHELLS and option in SHELL_OPTIONS:
            return script
        case _:
            return command


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
    return commands if script else []


def _is_harmless(words: list[str], folder: str, cwd: str) -> bool:
    match words:
        case ["sed", "-n", lines, *files]:
            does_no_more = bool(_PRINTED_LINES.fullmatch(lines)) and not any(file.startswith("-") for file in files)
        case [program, *others]:
            more = NOT_WITH.get(program)
            does_no_more = program in HARMLESS and not (more and any(map(more.match, others)))
        case _:
            return False
    if not does_no_more or not _comes_from_elsewhere(words[0], folder):
        return False
    return all(_names_nothing_outside(word, folder, cwd) for word in words[1:])


def _comes_from_elsewhere(program: str, folder: str) -> bool:
    """Return whether a program is not one of the folder's own: PATH may lead there, as that of direnv does."""
    found = shutil.which(program, path=program_path())
    return found is None or not (is_inside(found, folder) or is_inside(os.path.dirname(found), folder))  # noqa: PTH120


def _names_nothing_outside(word: str, folder: str, cwd: str) -> bool:
    """Return whether a word leads nowhere else, whichever part of an option may be the name of a file."""
    # In zsh, `=python` is wherever that program is.
    if word.startswith("="):
        return False
    if word.startswith("-") and ("/" in word or ".." in word or len(word) > LONGEST_OPTION):
        return False
    names = {word[place:].removeprefix("=") for place in range(len(word))} if word.startswith("-") else {word}
    return all(is_inside(os.path.join(cwd, name), folder) for name in names)  # noqa: PTH118
