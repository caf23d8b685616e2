"""The lines on tools in what an agent is told: some CLIs hide tools until their model searches for them."""

from bullpen.team.team import Team

TOOLS_NOTE = (
    "You also have tools, of the MCP server “bullpen”: read_history, search, read_message and read_diff show what was "
    "said and changed before, also what is not in this prompt; team shows who does what.\n"
    "To hand over, you can call hand_over instead of writing a marker; ask_person asks a person and waits for the "
    "answer; note leaves a note for everyone. Your reply is still what you say at the end."
)


def tools_note(team: Team) -> str:
    """Return the note; nothing if agents are not told how to hand over either."""
    return "" if team.hand_over_note is False else TOOLS_NOTE
