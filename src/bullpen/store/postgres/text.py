"""The character 0 in text, which PostgreSQL cannot store: escaped on the way there, and restored on the way back."""

from psycopg import Connection
from psycopg.abc import Buffer
from psycopg.pq import Format
from psycopg.types.string import StrDumperUnknown, TextLoader

# Hardly any text has this character, so hardly any is changed.
ESCAPE = "\x1a"


def prepare(connection: Connection[tuple[object, ...]]) -> None:
    """Let all text that a connection sends and receives be as it was."""
    connection.adapters.register_dumper(str, _Dumper)
    connection.adapters.register_loader("text", _Loader)
    connection.adapters.register_loader("text", _BinaryLoader)


def escaped(text: str) -> str:
    """Return a text without the character 0."""
    if "\0" not in text and ESCAPE not in text:
        return text
    return text.replace(ESCAPE, f"{ESCAPE}1").replace("\0", f"{ESCAPE}0")


def restored(text: str) -> str:
    """Return the text that was escaped."""
    if ESCAPE not in text:
        return text
    return text.replace(f"{ESCAPE}0", "\0").replace(f"{ESCAPE}1", ESCAPE)


class _Dumper(StrDumperUnknown):
    def dump(self, obj: str) -> Buffer | None:
        return super().dump(escaped(obj))


class _Loader(TextLoader):
    def load(self, data: Buffer) -> bytes | str:
        text = super().load(data)
        return restored(text) if isinstance(text, str) else text


class _BinaryLoader(_Loader):
    format = Format.BINARY
