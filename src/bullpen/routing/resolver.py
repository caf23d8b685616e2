"""Names in a team: which member somebody means."""

from msgspec import Struct

from bullpen.names import nearest, normalized
from bullpen.team import Member, Team


class Unresolved(Struct, frozen=True, kw_only=True):
    """A name that is nobody's, or more than one member's."""

    name: str
    candidates: tuple[str, ...] = ()
    """Whom it fits equally well, or the nearest names."""
    ambiguous: bool = False

    def __str__(self) -> str:
        choices = " or ".join(self.candidates)
        if self.ambiguous:
            return f"{self.name!r} could be {choices}."
        return f"Nobody here is called {self.name!r}." + (f" Did you mean {choices}?" if choices else "")


class Resolver:
    """Finds members by name or display name, whatever the case and the decoration."""

    def __init__(self, team: Team) -> None:
        self._names = {normalized(member.name): member for member in team.members}
        self._display_names: dict[str, list[Member]] = {}
        for member in team.members:
            if member.display_name:
                self._display_names.setdefault(normalized(member.display_name), []).append(member)

    def resolve(self, name: str) -> Member | Unresolved:
        """Return the member of that name: the name itself counts more than a display name."""
        key = normalized(name)
        if key in self._names:
            return self._names[key]
        matches = self._display_names.get(key, [])
        if len(matches) == 1:
            return matches[0]
        if matches:
            return Unresolved(name=name, candidates=tuple(member.name for member in matches), ambiguous=True)
        known = [member.name for member in self._names.values()]
        return Unresolved(name=name, candidates=nearest(name, known))
