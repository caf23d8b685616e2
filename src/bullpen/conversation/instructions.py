"""Instructions: what an agent is told about itself, by the team file and by instruction files."""

from collections.abc import Iterable
from pathlib import Path

from msgspec import Struct

from bullpen.conversation.member_agent import MemberAgent
from bullpen.conversation.memories import digest
from bullpen.team.hand_over_note import hand_over_note
from bullpen.team.instruction_files import InstructionFile, find_instruction_files
from bullpen.team.instruction_imports import ReadInstructions
from bullpen.team.team import Team
from bullpen.team.tools_note import tools_note


class Instructions(Struct, frozen=True, kw_only=True):
    """What an agent is told about itself: by the team file with the hand-over note, and by instruction files."""

    configured: str = ""
    file_text: str = ""
    files: tuple[str, ...] = ()
    """The files that were read."""
    by_itself: tuple[str, ...] = ()
    """Those that its program reads by itself."""
    problems: tuple[str, ...] = ()
    """Why others could not be read."""

    @property
    def digest(self) -> str:
        """To find out whether something has changed."""
        return digest(f"{self.configured}\0{self.file_text}")


NO_INSTRUCTIONS = Instructions()


def instructions_of(team: Team, root: Path, agent: MemberAgent) -> Instructions:
    """Return all that an agent is told about itself. Its files are read again for every turn.

    One that cannot be read does not stop the turn: the prompt does not contain it, and the report says why.
    """
    read = ReadInstructions(outside_allowed=team.outside_files)
    for name in (team.instruction_file, agent.member.instruction_file):
        if name:
            read.add(InstructionFile(name=name, folder=root))
    by_itself: list[str] = []
    usual = _usual_files(team, root, agent)
    reads_by_itself = agent.reads_by_itself if usual else ()
    for file in usual:
        if file.usual in reads_by_itself:
            by_itself.append(file.name)
        else:
            read.add(file)
    announced = agent.announced_instructions
    return Instructions(
        configured=joined(
            [
                agent.member.system_instruction,
                hand_over_note(team, agent.member),
                tools_note(team) if agent.has_tools else "",
            ]
        ),
        file_text=joined([*read.texts, announced.text]),
        files=tuple(read.names),
        by_itself=tuple(by_itself),
        problems=(*read.problems, *filter(None, [announced.problem])),
    )


def _usual_files(team: Team, root: Path, agent: MemberAgent) -> tuple[InstructionFile, ...]:
    """Return the files that a CLI's users keep for it, unless its member names another, or none, or works elsewhere."""
    if agent.member.instruction_file is not None or agent.member.pool:
        return ()
    names, allowed = agent.spec.instruction_files, team.outside_files
    return find_instruction_files(root, root / agent.member.cwd, names, outside_allowed=allowed)


def joined(texts: Iterable[str]) -> str:
    """Return texts as paragraphs, without those that are empty."""
    return "\n\n".join(text for text in texts if text)
