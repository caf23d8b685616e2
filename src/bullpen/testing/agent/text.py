"""Any other agent: the plain answer on stdout, everything else on stderr or nowhere."""

import bullpen
from bullpen.testing.agent.renderer import Record, Renderer, ToolCall, pieces
from bullpen.testing.agent.streams import STDERR, write_text

INTERRUPTED_EXIT = 130


class TextRenderer(Renderer):
    """There is no stream, so nothing opens or closes it."""

    version = f"bullpen {bullpen.__version__}"

    def opening(self) -> list[Record]:
        """Return nothing."""
        return []

    def closing(self) -> None:
        """Write nothing."""

    def interrupted(self) -> int:
        """Stop like a shell program."""
        return INTERRUPTED_EXIT

    def say(self, text: str, *, chunk: int = 0, delay: float = 0.0) -> None:
        """Write the text, piece by piece."""
        for piece in pieces(text, chunk, delay):
            write_text(piece)

    def think(self, text: str) -> None:
        """Write no thoughts."""

    def use(self, call: ToolCall) -> None:
        """Use a tool silently."""
        call.work()

    def todo(self, items: list[Record]) -> None:
        """Write no plan."""

    def retry(self, cause: int | str, *, message: str = "scripted error", of: int = 0) -> None:  # noqa: ARG002
        """Report a retry on stderr."""
        write_text(f"{cause}: {message}, trying again\n", STDERR)

    def error(self, status: int, *, message: str = "scripted error") -> int:
        """Report the error on stderr."""
        write_text(f"error {status}: {message}\n", STDERR)
        return 1

    def max_turns(self) -> int:
        """Report on stderr that the limit is reached."""
        write_text("Reached maximum number of turns\n", STDERR)
        return 1
