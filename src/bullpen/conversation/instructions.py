"""Instructions: what an agent is told about itself, by the team file and by instruction files."""

from collections.abc import Iterable
from pathlib import Path

from msgspec import Struct

from bullpen.conversation.member_agent import MemberAgent
from bullpen.conversation.memories import digest
from bullpen.errors import InstructionFileProblem
from bullpen.team.hand_over_note import hand_over_note
from bullpen.team.instruction_files import find_instruction_file, read_instruction_file
from bullpen.team.team import Team
from bullpen.team.tools_note import tools_note


class Instructions(Struct, frozen=True, kw_only=True):
    """What an agent is told about itself: by the team file with the hand-over note, and by instruction files."""

    configured: str = ""
    file_text: str = ""
    problems: tuple[str, ...] = ()
    """Why files could not be read."""

    @property
    def digest(self) -> str:
        """To find out whether something has changed."""
        return digest(f"{self.configured}\0{self.file_text}")


NO_INSTRUCTIONS = Instructions()


def instructions_of(team: Team, root: Path, agent: MemberAgent) -> Instructions:
    """Return all that an agent is told about itself. Its files are read again for every turn.

    One that cannot be read does not stop the turn: the prompt does not contain it, and the report says why.
    """
    allowed = team.outside_files
    own = agent.member.instruction_file
    if own is None and not agent.member.pool:
        own = find_instruction_file(root, root / agent.member.cwd, agent.spec.instruction_file, outside_allowed=allowed)
    texts: list[str] = []
    problems: list[str] = []
    for name in dict.fromkeys(name for name in (team.instruction_file, own) if name):
        try:
            texts.append(read_instruction_file(root, name, outside_allowed=allowed))
        except InstructionFileProblem as problem:
            problems.append(str(problem))
    return Instructions(
        configured=joined(
            [
                agent.member.system_instruction,
                hand_over_note(team, agent.member),
                tools_note(team) if agent.has_tools else "",
            ]
        ),
        file_text=joined([*texts, agent.announced_instructions]),
        problems=tuple(problems),
    )


def joined(texts: Iterable[str]) -> str:
    """Return texts as paragraphs, without those that are empty."""
    return "\n\n".join(text for text in texts if text)
