"""Any other agent: the answer on stdout as it is, everything else on stderr or nowhere."""

import time

import bullpen
from bullpen.testing.agent.renderer import Record, Renderer, ToolCall, pieces
from bullpen.testing.agent.streams import STDERR, write_text

INTERRUPTED_EXIT = 130


class TextRenderer(Renderer):
    """There is no stream, so nothing opens and nothing closes it."""

    version = f"bullpen {bullpen.__version__}"

    def opening(self) -> list[Record]:
        """Return nothing."""
        return []

    def closing(self) -> None:
        """Write nothing."""

    def interrupted(self) -> int:
        """Stop as a shell's programs do."""
        return INTERRUPTED_EXIT

    def say(self, text: str, *, chunk: int = 0, delay: float = 0.0) -> None:
        """Write the text, piece by piece."""
        for piece in pieces(text, chunk, delay):
            write_text(piece)

    def think(self, text: str) -> None:
        """Keep a thought to itself."""

    def use(self, call: ToolCall) -> None:
        """Use a tool silently."""
        time.sleep(call.seconds)

    def todo(self, items: list[Record]) -> None:
        """Keep the plan to itself."""

    def retry(self, cause: int | str, *, message: str = "scripted error", of: int = 0) -> None:  # noqa: ARG002
        """Tell on stderr that it tries again."""
        write_text(f"{cause}: {message}, trying again\n", STDERR)

    def error(self, status: int, *, message: str = "scripted error") -> int:
        """Tell the error on stderr."""
        write_text(f"error {status}: {message}\n", STDERR)
        return 1

    def max_turns(self) -> int:
        """Tell on stderr that the limit is reached."""
        write_text("Reached maximum number of turns\n", STDERR)
        return 1
