"""What an editor asks, as values: each is checked when it arrives. What a newer editor adds is ignored."""

from pathlib import Path

from msgspec import Struct


class EditorOptions(Struct, frozen=True, kw_only=True):
    """How `bullpen acp` was started."""

    file: Path | None
    """None: the usual file in the folder of a session."""
    sender: str | None
    trust: bool
    db: Path | None
    trusted: Path | None = None
    """Another file that says which team files a person has agreed to run. It is only read."""


class NewSession(Struct, rename="camel"):
    """A new conversation."""

    cwd: str


class LoadSession(Struct, rename="camel"):
    """A conversation that is continued."""

    session_id: str
    cwd: str


class ListSessions(Struct, rename="camel"):
    """Which conversations there are."""

    cwd: str | None = None
    cursor: str | None = None


class OfSession(Struct, rename="camel"):
    """Something about an open conversation."""

    session_id: str


class SetMode(Struct, rename="camel"):
    """Who is asked from now on."""

    session_id: str
    mode_id: str


class Text(Struct, tag_field="type", tag="text"):
    """What a person wrote."""

    text: str


class Link(Struct, tag_field="type", tag="resource_link"):
    """A file that a person named."""

    uri: str
    name: str = ""


class Contents(Struct):
    """What is in a file, or in a part of it."""

    uri: str
    text: str | None = None


class Resource(Struct, tag_field="type", tag="resource"):
    """A file that a person named, with what is in it."""

    resource: Contents


class Image(Struct, tag_field="type", tag="image"):
    """A picture."""


class Audio(Struct, tag_field="type", tag="audio"):
    """A sound."""


Block = Text | Link | Resource | Image | Audio


class Prompt(Struct, rename="camel"):
    """What a person says."""

    session_id: str
    prompt: list[Block]
