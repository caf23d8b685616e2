"""What a person is asked before a team file may run: every program it names, where, and what it may do."""

import shlex
from collections.abc import Iterator, Sequence
from pathlib import Path

from msgspec import Struct

from bullpen.agents.settings_choice import names_of
from bullpen.team.file import LoadedTeam
from bullpen.team.settings_words import settings_words
from bullpen.team.trust import Runs, what_it_runs
from bullpen.text.visible import visible


class MemberQuestion(Struct, frozen=True, kw_only=True):
    """What one member or one check would run."""

    member: str
    facts: tuple[tuple[str, str], ...]
    """A word and what follows it: runs, in, when, may, gets, reads, skips. Each is one line."""


class TrustQuestion(Struct, frozen=True, kw_only=True):
    """Everything that a person should know of a team file before it runs."""

    path: Path
    marks: frozenset[str] = frozenset()
    """The settings that are shown, as an agreement to them is kept."""
    members: tuple[MemberQuestion, ...]
    notes: tuple[str, ...]


def trust_question(loaded: LoadedTeam) -> TrustQuestion:
    """Return what a person is asked about a team file."""
    would_run = what_it_runs(loaded.team, loaded.root)
    return TrustQuestion(
        path=loaded.path,
        marks=frozenset().union(*(runs.settings.marks for runs in would_run)),
        members=tuple(MemberQuestion(member=_one_line(runs.member), facts=tuple(_facts(runs))) for runs in would_run),
        notes=tuple(map(_one_line, _notes(loaded))),
    )


def _facts(runs: Runs) -> Iterator[tuple[str, str]]:
    yield "runs", _one_line(shlex.join(runs.command))
    yield "in", _one_line(str(runs.folder))
    if runs.when:
        yield "when", _one_line(runs.when)
    yield "may", _one_line(_permissions(runs))
    if runs.sandbox:
        yield "held", _one_line(runs.sandbox)
    if runs.environment:
        yield "gets", _one_line(f"the variables {', '.join(runs.environment)}")
    if runs.instruction_file:
        yield "reads", _one_line(str(runs.instruction_file))
    for file in runs.settings.reads:
        said = "; ".join(settings_words(runs.folder / file.name)) or "nothing in it that runs or allows anything"
        yield "reads", _one_line(f"{runs.folder / file.name} ({said})")
    if runs.settings.left_out:
        yield "skips", _one_line(f"{names_of(runs.settings.left_out)}: settings count with full permissions only")


def _permissions(runs: Runs) -> str:
    if not runs.restricted and not runs.is_held:
        return "do anything that you may: bullpen cannot restrict this program"
    allowed = {
        "read-only": "read",
        "edit": "read, and change files",
        "ask": "read, and change files in its folder; for anything else it asks you",
        "full": "do anything that you may, without asking",
    }
    unless = ", unless its own arguments say otherwise: " + shlex.join(runs.own_arguments) if runs.own_arguments else ""
    commands = f", and run any command that begins with {_any_of(runs.allow)}" if runs.allow else ""
    if runs.permissions == "ask":
        commands = f", but not for {_any_of(runs.allow)}" if runs.allow else ""
        commands += f"; never {_any_of(runs.deny)}" if runs.deny else ""
    return f"{allowed[runs.permissions]} ({runs.permissions}){commands}{unless}"


def _any_of(commands: Sequence[str]) -> str:
    quoted = [f'"{command}"' for command in commands]
    return " or ".join([", ".join(quoted[:-1]), quoted[-1]] if len(quoted) > 1 else quoted)


def _notes(loaded: LoadedTeam) -> Iterator[str]:
    if loaded.team.instruction_file:
        yield f"Every agent is given {loaded.root / loaded.team.instruction_file}."
    if loaded.team.outside_files:
        yield f"Instruction files may be outside of {loaded.root}."


def _one_line(text: str) -> str:
    """Return the text with nothing hidden, and so that it cannot pass for another line."""
    return visible(text).replace("\n", "\\n").replace("\t", "\\t")
