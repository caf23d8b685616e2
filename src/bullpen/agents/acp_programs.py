"""Other agents that speak the Agent Client Protocol, by their commands: for `agent = "acp"` in a team file."""

from msgspec import Struct


class AcpProgram(Struct, frozen=True):
    """One of them."""

    title: str
    command: tuple[str, ...]
    needs: str = "an account"
    """What it needs before it answers."""
    folders: tuple[str, ...] = ()
    """Where it keeps its files, in the home folder."""

    @property
    def toml(self) -> str:
        """The lines of a team file that make it a member."""
        words = ", ".join(f'"{word}"' for word in self.command)
        return f'agent = "acp"\ncommand = [{words}]'

    @property
    def sentence(self) -> str:
        """What people are told who have it."""
        lines = self.toml.replace("\n", ", ")
        return f"{self.title} is here, too. It needs {self.needs}. In a team file: {lines}"


ACP_PROGRAMS = (
    AcpProgram("Auggie", ("auggie", "--acp"), folders=(".augment",)),
    AcpProgram("Cline", ("cline", "--acp"), folders=(".cline",)),
    AcpProgram("Factory Droid", ("droid", "exec", "--output-format", "acp"), folders=(".factory",)),
    AcpProgram("fast-agent", ("fast-agent-acp",), needs="a key of a vendor of models", folders=(".fast-agent",)),
    AcpProgram("OpenHands", ("openhands", "acp"), folders=(".openhands",)),
    AcpProgram("Qoder CLI", ("qodercli", "--acp"), folders=(".qoder",)),
)
