"""prompts = "specification": agents get what the specification's texts say in every turn, and nothing of ours."""

from collections.abc import Iterator, Mapping
from typing import Any

from msgspec.structs import replace

from bullpen.team.team import SMALLEST_WINDOW, Member, Team

Path = tuple[str | int, ...]
Fitting = Mapping[str, tuple[object, ...]]
TEAM_KEYS: Fitting = {"hand_over_note": (False,), "message_header": (False,), "whitespace": ("collapse",)}
"""The keys that ask for other prompts, and the values of each that do not."""
MEMBER_KEYS: Fitting = {"memory": ("shared",), "window_bytes": ()}


def as_specified(team: Team) -> Team:
    """Return a team without notes and headers, whose members begin each turn with a window of messages."""
    members = tuple(member if member.type == "human" else _without_memory(member) for member in team.members)
    return replace(team, members=members, message_header=False, hand_over_note=False, whitespace="specification")


def contradictions(document: Mapping[str, Any]) -> Iterator[tuple[Path, str]]:
    """Yield every key of a team file that asks for other prompts, and what to do."""
    members = document.get("member")
    yield from _contradictions(document, TEAM_KEYS, ())
    yield from _contradictions(document.get("defaults"), MEMBER_KEYS, ("defaults",))
    for index, table in enumerate(members if isinstance(members, list) else []):
        yield from _contradictions(table, MEMBER_KEYS, ("member", index))


def _contradictions(table: object, keys: Fitting, path: Path) -> Iterator[tuple[Path, str]]:
    for key, fitting in keys.items():
        if isinstance(table, Mapping) and key in table and table[key] not in fitting:
            instead = ". Write window, which counts messages" if key == "window_bytes" else ". Remove one of the two"
            yield (*path, key), f'contradicts prompts = "specification"{instead}'


def _without_memory(member: Member) -> Member:
    return replace(member, memory="shared", window=SMALLEST_WINDOW if member.window is None else member.window)
