"""An export as a file: private, written completely or not at all, and never overwriting another file unasked."""

import os
import secrets
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Literal

from bullpen.errors import BullpenError, OutputExists
from bullpen.exchange.as_json import json_pieces
from bullpen.exchange.formatting import Writable
from bullpen.exchange.html import html_pieces
from bullpen.exchange.markdown import markdown_pieces
from bullpen.store.base import Store

Format = Literal["md", "html", "json"]
FORMATS: tuple[Format, ...] = ("md", "html", "json")
FILE_MODE = 0o600


def export_pieces(store: Store, conversation_id: str, file_format: Format, *, prompts: bool = False) -> Iterator[str]:
    """Yield a conversation in one of the formats piece by piece; only JSON can contain prompts."""
    match file_format:
        case "md":
            return markdown_pieces(store, conversation_id)
        case "html":
            return html_pieces(store, conversation_id)
        case "json":
            return json_pieces(store, conversation_id, prompts=prompts)


def write_export(
    store: Store, conversation_id: str, file: Writable, file_format: Format, *, prompts: bool = False
) -> None:
    """Write a conversation in one of the formats; only JSON can contain prompts."""
    for piece in export_pieces(store, conversation_id, file_format, prompts=prompts):
        file.write(piece)


def export_named(store: Store, conversation_id: str, name: str) -> Path:
    """Write a conversation to the file that a person named, or to one with its id; return where it is."""
    try:
        path = Path(name or f"{conversation_id}.md").expanduser()
        if path.suffix.removeprefix(".").lower() not in FORMATS:
            raise BullpenError(f"{path} is not written: a name must end in .md, .html or .json.")
        export_to(store, conversation_id, path)
    except OutputExists as error:
        raise BullpenError(f"{error.path} already exists and was not changed. Choose another file.") from error
    except (RuntimeError, ValueError) as error:
        raise BullpenError(f"{name!r} cannot be the name of a file: {error}.") from error
    return path


def export_to(store: Store, conversation_id: str, path: Path) -> None:
    """Write a conversation to a new file; its extension determines the format."""
    ending = path.suffix.removeprefix(".").lower()
    file_format: Format = next((known for known in FORMATS if known == ending), "md")
    try:
        write_private_file(path, lambda file: write_export(store, conversation_id, file, file_format))
    except OSError as error:
        raise BullpenError(f"{path} cannot be written: {error.strerror}.") from error


def write_private_file(path: Path, write: Callable[[Writable], None], *, overwrite: bool = False) -> None:
    """Call `write` with a new file that only its owner can read. If that fails, no file is left."""
    draft = path.with_name(f".{path.name}.{secrets.token_hex(8)}.new") if overwrite else path
    try:
        handle = os.open(draft, os.O_CREAT | os.O_EXCL | os.O_WRONLY, FILE_MODE)
    except FileExistsError as error:
        raise OutputExists(path) from error
    try:
        with os.fdopen(handle, "w", encoding="utf-8", newline="") as file:
            write(file)
        if overwrite:
            draft.replace(path)
    except BaseException:
        draft.unlink(missing_ok=True)
        raise
