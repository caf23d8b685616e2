"""Names in a team: which member a name means."""

from msgspec import Struct

from bullpen.team.team import EVERY_AGENT, Member, Team
from bullpen.text.names import nearest, normalized

LONGEST_SHOWN = 100
"""Characters of a wrong name that are shown. Anything longer is not a misspelled name, either."""
MOST_CANDIDATES = 3


class Unresolved(Struct, frozen=True, kw_only=True):
    """A name that no member has, or more than one."""

    name: str
    candidates: tuple[str, ...] = ()
    """The members it matches, or the most similar names."""
    ambiguous: bool = False

    def __str__(self) -> str:
        choices = " or ".join(self.candidates)
        if not self.name.strip():
            return "A name is missing."
        if self.ambiguous:
            return f"{self._shown} could be {choices}."
        return f"Nobody here is called {self._shown}." + (f" Did you mean {choices}?" if choices else "")

    @property
    def _shown(self) -> str:
        return repr(self.name if len(self.name) <= LONGEST_SHOWN else f"{self.name[: LONGEST_SHOWN - 1]}…")


class Resolver:
    """Finds members by name or display name, ignoring case and punctuation around the name."""

    def __init__(self, team: Team) -> None:
        self._names = {normalized(member.name): member for member in team.members}
        self._display_names: dict[str, list[Member]] = {}
        for member in team.members:
            # A display name of only punctuation would match "@".
            if key := normalized(member.display_name):
                self._display_names.setdefault(key, []).append(member)

    def resolve(self, name: str) -> Member | Unresolved:
        """Return the member with that name: a name takes precedence over a display name."""
        found = self.members_called(name)
        if len(found) == 1:
            return found[0]
        candidates = tuple(member.name for member in found) or self._nearest(name)
        return Unresolved(name=name, candidates=candidates, ambiguous=bool(found))

    def members_called(self, name: str) -> tuple[Member, ...]:
        """Return everyone with that name; fast, since it does not search for similar names."""
        key = normalized(name)
        return (self._names[key],) if key in self._names else tuple(self._display_names.get(key, ()))

    def is_everyone(self, name: str) -> bool:
        """Return whether a name means all agents at once."""
        return normalized(name) in EVERY_AGENT and not self.members_called(name)

    def _nearest(self, name: str) -> tuple[str, ...]:
        if len(name) > LONGEST_SHOWN:
            return ()
        members = {key: found[0].name for key, found in self._display_names.items() if len(found) == 1}
        members |= {key: member.name for key, member in self._names.items()}
        close = nearest(name, members, limit=2 * MOST_CANDIDATES)
        return tuple(dict.fromkeys(members[key] for key in close))[:MOST_CANDIDATES]
