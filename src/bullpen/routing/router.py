"""Who answers a message, and why: from its marks and the team's rules to turns, notes, and whom we wait for."""

from collections.abc import Iterable

from msgspec import Struct

from bullpen.context.markers import Addressee, Markers
from bullpen.errors import UnknownSender
from bullpen.names import normalized
from bullpen.routing.resolver import Resolver, Unresolved
from bullpen.team import EVERYONE, Member, Team


class Asked(Struct, frozen=True, kw_only=True):
    """A member that is asked to answer, how soon, and at which step of a relay."""

    member: str
    intent: int
    step: int


class Route(Struct, frozen=True, kw_only=True):
    """What a message sets in motion."""

    asked: tuple[Asked, ...] = ()
    """Agents, in the order of the relay."""
    waits_for: str | None = None
    """The person it is handed to."""
    addressees: tuple[str, ...] = ()
    """Everyone it is addressed to; empty means everyone."""
    drops: tuple[str, ...] = ()
    """Whose waiting turns go, before anybody new is asked."""
    drops_all: bool = False
    team_task: str | None = None
    reason: str = ""
    """Why these, in a sentence, when the message itself does not say."""
    notes: tuple[str, ...] = ()
    """What people should know: names that are nobody's, hand-overs that are not allowed."""


class Router:
    """Routes messages in one team."""

    def __init__(self, team: Team) -> None:
        self._team = team
        self._resolver = Resolver(team)

    def sender_of(self, markers: Markers, *, given: str | None = None, waited_for: str | None = None) -> Member:
        """Return which person a message from a person's channel is from, or raise UnknownSender.

        The one that is given, else the one it names with [FROM: …], else the one we wait for, else the only person.
        """
        name = given or markers.sender or waited_for
        people = self._team.people
        if name is None:
            if len(people) == 1:
                return people[0]
            raise UnknownSender("Say who you are, with [FROM: name] or --as name.", (m.name for m in people))
        member = self._resolver.resolve(name)
        if isinstance(member, Unresolved):
            raise UnknownSender(str(member), (person.name for person in people))
        if member.type != "human":
            raise UnknownSender(
                f"{member.name} is an agent, and speaks for itself.", (person.name for person in people)
            )
        return member

    def route(
        self, sender: Member, markers: Markers, *, last_to_hand_over: str | None = None, person: str | None = None
    ) -> Route:
        """Return what a message sets in motion.

        `last_to_hand_over` is the agent that last handed over to the sender, if that is a person; `person` is the one
        that an agent's reply without a hand-over goes back to.
        """
        asked, people, addressees, notes = self._hand_overs(sender, markers)
        drops, drops_all, drop_notes = self._drops(markers)
        task, task_notes = self._team_task(sender, markers)
        waits_for, reason = (people[0] if people else None), ""
        if not addressees and sender.type == "human":
            member = last_to_hand_over or self._team.lead
            asked = (Asked(member=member, intent=2, step=0),)
            addressees = (member,)
            reason = f"{member} handed over to you last." if last_to_hand_over else f"{member} leads the team."
        elif not addressees:
            waits_for = person
        return Route(
            asked=asked,
            waits_for=waits_for,
            addressees=addressees,
            drops=drops,
            drops_all=drops_all,
            team_task=task,
            reason=reason,
            notes=(*notes, *drop_notes, *task_notes),
        )

    def _hand_overs(
        self, sender: Member, markers: Markers
    ) -> tuple[tuple[Asked, ...], tuple[str, ...], tuple[str, ...], tuple[str, ...]]:
        """Return the agents asked, the people, all addressees, and notes on the names that did not work."""
        asked: dict[str, Asked] = {}
        people: dict[str, None] = {}
        notes: list[str] = []
        for step, group in enumerate(markers.next):
            for addressee in group:
                member = self._allowed(sender, addressee)
                if isinstance(member, str):
                    notes.append(member)
                elif member.type == "human":
                    people[member.name] = None
                else:
                    new = Asked(member=member.name, intent=addressee.intent, step=step)
                    asked[member.name] = min(asked.get(member.name, new), new, key=lambda turn: turn.intent)
        addressees = tuple(dict.fromkeys([*asked, *people]))
        return tuple(asked.values()), tuple(people), addressees, tuple(notes)

    def _allowed(self, sender: Member, addressee: Addressee) -> Member | str:
        """Return the member that is meant, or why it cannot be handed to."""
        member = self._resolver.resolve(addressee.name)
        if isinstance(member, Unresolved):
            return str(member)
        if member.name == sender.name:
            return f"{sender.name} cannot hand over to itself."
        if sender.may_address is not None and member.name not in sender.may_address:
            return f"{sender.name} may not hand over to {member.name}: the team file does not list it in may_address."
        return member

    def _drops(self, markers: Markers) -> tuple[tuple[str, ...], bool, Iterable[str]]:
        names = [name for name in markers.drop if normalized(name) != EVERYONE]
        found = [self._resolver.resolve(name) for name in names]
        members = tuple(member.name for member in found if isinstance(member, Member))
        return members, len(names) < len(markers.drop), [str(name) for name in found if isinstance(name, Unresolved)]

    def _team_task(self, sender: Member, markers: Markers) -> tuple[str | None, Iterable[str]]:
        if markers.team_task is None or sender.type == "human" or sender.may_set_task:
            return markers.team_task, ()
        return None, [f"{sender.name} may not set the team's task: the team file does not allow it (may_set_task)."]
