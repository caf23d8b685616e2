"""Who answers a message, and why: from its markers and the team's rules to turns, notes, and the person to wait for."""

from collections.abc import Callable, Iterable, Mapping, Sequence

from msgspec import Struct
from msgspec.structs import replace

from bullpen.errors import UnknownMember, UnknownSender
from bullpen.markers.grammar import DEFAULT_INTENT, MOST_MARKERS, MOST_NAMES, Addressee, BestOf, Markers
from bullpen.routing.blind import NOBODY_JUDGES, judged_steps
from bullpen.routing.mentions import Mentions
from bullpen.routing.resolver import Resolver, Unresolved
from bullpen.routing.rounds import MOST_CANDIDATES
from bullpen.routing.summaries import summarizer_of
from bullpen.team.lead import read_lead
from bullpen.team.reach import reach
from bullpen.team.team import EVERYONE, Member, Team
from bullpen.text.names import normalized

MOST_NOTES = 5
MIXED = (
    "[NEXT: a | b] lets several do the same task, so it stands alone: without commas, “&” and other hand-overs. Write "
    "[NEXT: a | b], or [NEXT: a | b -> judge] to let a member pick."
)
NOBODY_WAS_ASKED = "Nobody was asked. Ask somebody with /next NAME, or say it again."


class Asked(Struct, frozen=True, kw_only=True):
    """A member that is asked to answer, with its intent and its step in a relay."""

    member: str
    intent: int
    step: int
    needs_yes: bool = False
    """Whether a person must allow it first: the sender may not reach this member by itself."""


class Route(Struct, frozen=True, kw_only=True):
    """What a message causes."""

    asked: tuple[Asked, ...] = ()
    """Agents in the order of the relay, and the people between them, who hold up the rest until they have spoken."""
    waits_for: str | None = None
    """The person it hands over to."""
    addressees: tuple[str, ...] = ()
    """Everyone it is addressed to, as written; empty means everyone."""
    is_blind: bool = False
    """Whether who answers after a group is not told whose replies are whose."""
    is_best_of: bool = False
    """Whether those who are asked do the same task apart from each other, and one result is picked."""
    judge: Asked | None = None
    """The agent that picks; None: a person does."""
    drops: tuple[str, ...] = ()
    """Whose waiting turns are dropped, before anybody new is asked."""
    drops_all: bool = False
    team_task: str | None = None
    reason: str = ""
    """Why these members, in a sentence, if the message itself does not name them."""
    added: tuple[str, ...] = ()
    """Those of them who answer after the others because the message mentions them later than at its beginning."""
    notes: tuple[str, ...] = ()
    """What people should know: unknown names, hand-overs that are not allowed, markers that were not read."""


class Router:
    """Routes messages in one team."""

    def __init__(self, team: Team, why_not_apart: Callable[[Member], str] = lambda _: "") -> None:
        """Route messages; the function says why an agent cannot work in a worktree of its own, if so."""
        self.team = team
        self._why_not_apart = why_not_apart
        self._resolver = Resolver(team)
        self._mentions = Mentions(team)

    def with_mentions(self, markers: Markers, text: str) -> Markers:
        """Return a person's markers with the members that the text mentions with "@"."""
        return self._mentions.added_to(markers, text)

    def summarizer(self, name: str | None) -> Member:
        """Return who writes a summary: the one named, or who usually does; UnknownMember or BullpenError if nobody."""
        return summarizer_of(self.team, name, self.member)

    def with_summarizer(self, markers: Markers) -> Markers:
        """Return a person's markers with [SUM UP] as a hand-over to the one who is to sum up, and to nobody else."""
        member = self.summarizer(markers.sum_up)
        return replace(markers, next=((Addressee(member.name),),), best_of=None)

    def sender_of(self, markers: Markers, *, given: str | None = None, waited_for: str | None = None) -> Member:
        """Return which person sent a message, or raise UnknownSender.

        The person given, else the one named with [FROM: …], else the one we are waiting for, else the only person.
        """
        name = given or markers.sender or waited_for
        people = self.team.people
        if name is None:
            if len(people) == 1:
                return people[0]
            raise UnknownSender("Say who you are, with [FROM: name] or --as name.", (m.name for m in people))
        member = self._resolver.resolve(name)
        if isinstance(member, Unresolved):
            raise UnknownSender(str(member), (person.name for person in people))
        if member.type != "human":
            raise UnknownSender(
                f"{member.name} is an agent; only people can send messages here.", (person.name for person in people)
            )
        return member

    def member(self, name: str) -> Member:
        """Return the member with this name, or raise UnknownMember."""
        found = self._resolver.resolve(name)
        if isinstance(found, Unresolved):
            raise UnknownMember(str(found))
        return found

    def route(
        self,
        sender: Member,
        markers: Markers,
        *,
        last_to_hand_over: str | None = None,
        person: str | None = None,
        in_relay: bool = False,
    ) -> Route:
        """Return what a message causes.

        `last_to_hand_over` is the agent that last handed over to the sender, if that is a person; `person` is the one
        that an agent's reply without a hand-over returns to; `in_relay` says that others are waiting for the sender.
        """
        hand_overs, notes = self._hand_overs(sender, markers)
        others = Route()
        if markers.is_after_others and hand_overs and not in_relay:
            others = self._without_hand_over(sender, last_to_hand_over)
            hand_overs = _after(others, hand_overs)
        judge: Asked | None = None
        if markers.best_of is not None:
            hand_overs, judge, problems = self._best_of(sender, markers.best_of, hand_overs)
            notes += problems
        elif markers.is_blind and hand_overs:
            hand_overs, problems = _with_judge(sender, hand_overs)
            notes += problems
        drops, drops_all, drop_notes = self._drops(sender, markers)
        task, task_notes = self._team_task(sender, markers)
        route = Route(
            asked=self._turns_of(hand_overs),
            waits_for=next((name for name in hand_overs if self._is_person(name)), None),
            addressees=tuple(hand_overs),
            is_blind=others.is_blind
            or (markers.is_blind and judged_steps(one.step for one in hand_overs.values()) is not None),
            is_best_of=markers.best_of is not None and bool(hand_overs),
            judge=judge,
            drops=drops,
            drops_all=drops_all,
            team_task=task,
            reason=others.reason,
            added=tuple(hand_overs)[len(others.asked) :] if others.asked else (),
            notes=_few([*_cut_notes(markers), *notes, *drop_notes, *task_notes]),
        )
        if hand_overs:
            return route
        if sender.type == "ai":
            return replace(route, waits_for=person)
        if markers.next and not in_relay:
            return replace(route, waits_for=sender.name, notes=(*route.notes, NOBODY_WAS_ASKED))
        if in_relay:
            return replace(route, reason="The others in the relay were waiting for this.")
        unnamed = self._without_hand_over(sender, last_to_hand_over)
        return replace(
            route,
            asked=unnamed.asked,
            addressees=unnamed.addressees,
            is_blind=unnamed.is_blind,
            reason=unnamed.reason,
        )

    def _without_hand_over(self, sender: Member, last_to_hand_over: str | None) -> Route:
        """Return who gets a person's message that names nobody."""
        if last_to_hand_over is not None:
            asked = Asked(member=last_to_hand_over, intent=DEFAULT_INTENT, step=0)
            reason = f"{last_to_hand_over} spoke to you last."
            return Route(asked=(asked,), addressees=(last_to_hand_over,), reason=reason)
        lead = read_lead(self.team.lead)
        leads, _ = self._hand_overs(sender, lead)
        is_blind = lead.is_blind and judged_steps(one.step for one in leads.values()) is not None
        is_one = len(leads) == 1
        reason = f"{self.team.lead} leads the team." if is_one else f"The team file says: lead = {self.team.lead}."
        return Route(asked=tuple(leads.values()), addressees=tuple(leads), is_blind=is_blind, reason=reason)

    def _hand_overs(self, sender: Member, markers: Markers) -> tuple[dict[str, Asked], list[str]]:
        """Return everyone the message hands over to, as written, and notes on the names that did not work."""
        asked: dict[str, Asked] = {}
        notes: dict[str, None] = {}
        seen: dict[str, Sequence[Member | str]] = {}
        for step, group in enumerate(markers.next):
            for addressee in group:
                # A hostile reply may contain a thousand names; each is looked up once.
                if addressee.name not in seen:
                    seen[addressee.name] = self._meant(sender, addressee)
                for member in seen[addressee.name]:
                    if isinstance(member, str):
                        notes[member] = None
                    # "Look at it, then let me decide, then build it": a person may come later in their own relay.
                    elif member.name == sender.name and (sender.type == "ai" or not asked):
                        notes[f"{sender.name} cannot hand over to itself."] = None
                    else:
                        needs_yes = reach(sender, member) == "if_allowed"
                        new = Asked(member=member.name, intent=addressee.intent, step=step, needs_yes=needs_yes)
                        first = asked.get(member.name, new)
                        asked[member.name] = replace(first, intent=min(first.intent, new.intent))
        return asked, list(notes)

    def _best_of(
        self, sender: Member, wanted: BestOf, asked: Mapping[str, Asked]
    ) -> tuple[dict[str, Asked], Asked | None, list[str]]:
        """Return who does the same task, and who picks; nobody, and why, if that cannot be done."""
        judge = self._judge(sender, wanted.judge) if wanted.judge else None
        people = [name for name in asked if self._is_person(name)]
        if wanted.is_mixed:
            return {}, None, [MIXED]
        if isinstance(judge, str):
            return {}, None, [judge]
        if people:
            return {}, None, [f"{people[0]} is a person: only agents can do the same task apart from each other."]
        if judge is not None and judge.member in asked:
            return {}, None, [f"{judge.member} cannot judge its own work. Let somebody else pick."]
        if not 2 <= len(asked) <= MOST_CANDIDATES:
            number = f"at most {MOST_CANDIDATES}" if len(asked) > MOST_CANDIDATES else "at least two"
            return {}, None, [f"Best of several needs {number} agents, for example [NEXT: a | b]."]
        reasons = dict.fromkeys(filter(None, (self._why_not_apart(self.team.member(name)) for name in asked)))
        if reasons:
            return {}, None, list(reasons)
        intent = min(one.intent for one in asked.values())
        return {name: replace(one, intent=intent, step=0) for name, one in asked.items()}, judge, []

    def _judge(self, sender: Member, name: str) -> Asked | str:
        member = self._allowed(sender, name)
        if isinstance(member, str):
            return member
        if member.type != "ai":
            return f"{member.name} is a person, and picks with /pick: write only [NEXT: a | b]."
        needs_yes = reach(sender, member) == "if_allowed"
        return Asked(member=member.name, intent=DEFAULT_INTENT, step=1, needs_yes=needs_yes)

    def _turns_of(self, hand_overs: Mapping[str, Asked]) -> tuple[Asked, ...]:
        """Return the turns to queue: those of agents, and those of people with an agent after them."""
        last_agent = max((turn.step for name, turn in hand_overs.items() if not self._is_person(name)), default=-1)
        return tuple(turn for name, turn in hand_overs.items() if not self._is_person(name) or turn.step < last_agent)

    def _is_person(self, name: str) -> bool:
        return self.team.member(name).type == "human"

    def _meant(self, sender: Member, addressee: Addressee) -> Sequence[Member | str]:
        """Return the members that a name means, or why the sender cannot hand over to it."""
        if not self._resolver.is_everyone(addressee.name):
            return [self._allowed(sender, addressee.name)]
        others = (agent for agent in self.team.agents if agent.name != sender.name)
        allowed = [self._allowed(sender, agent.name) for agent in others]
        return [agent for agent in allowed if isinstance(agent, Member)] or [f"{sender.name} may not ask any agent."]

    def _allowed(self, sender: Member, name: str) -> Member | str:
        member = self._resolver.resolve(name)
        if isinstance(member, Unresolved):
            return str(member)
        if reach(sender, member) == "never":
            return f"{sender.name} may not hand over to {member.name}: the team file does not list it in may_address."
        return member

    def _drops(self, sender: Member, markers: Markers) -> tuple[tuple[str, ...], bool, Iterable[str]]:
        if markers.drop and sender.type == "ai" and not sender.may_drop:
            return (), False, [f"{sender.name} may not drop turns: the team file does not allow it (may_drop)."]
        names = [name for name in markers.drop if normalized(name) != EVERYONE]
        found = [self._resolver.resolve(name) for name in names]
        members = tuple(member.name for member in found if isinstance(member, Member))
        return members, len(names) < len(markers.drop), [str(name) for name in found if isinstance(name, Unresolved)]

    def _team_task(self, sender: Member, markers: Markers) -> tuple[str | None, Iterable[str]]:
        if markers.team_task is None or sender.type == "human" or sender.may_set_task:
            return markers.team_task, ()
        return None, [f"{sender.name} may not set the team's task: the team file does not allow it (may_set_task)."]


def _after(others: Route, mentioned: Mapping[str, Asked]) -> dict[str, Asked]:
    """Return everyone in a relay: the others, and after them those who are mentioned and are not among them."""
    first = {one.member: one for one in others.asked}
    steps = 1 + max((one.step for one in others.asked), default=-1)
    later = {name: replace(one, step=one.step + steps) for name, one in mentioned.items() if name not in first}
    return first | later


def _with_judge(sender: Member, asked: Mapping[str, Asked]) -> tuple[dict[str, Asked], list[str]]:
    """Return who answers in a blind round: if nobody judges it, the agent does that asked for it."""
    steps = [one.step for one in asked.values()]
    if judged_steps(steps) is not None:
        return dict(asked), []
    if sender.type == "ai" and judged_steps([*steps, max(steps) + 1]) is not None:
        judge = Asked(member=sender.name, intent=DEFAULT_INTENT, step=max(steps) + 1)
        return {**asked, sender.name: judge}, []
    return dict(asked), [NOBODY_JUDGES]


def _cut_notes(markers: Markers) -> Iterable[str]:
    if not markers.are_cut:
        return ()
    return [
        f"Only the first {MOST_MARKERS:,} markers and {MOST_NAMES:,} names of a message are read; this one has more."
    ]


def _few(notes: Iterable[str]) -> tuple[str, ...]:
    """Return the first few notes, and how many more there are."""
    unique = tuple(dict.fromkeys(notes))
    more = len(unique) - MOST_NOTES
    return unique if more <= 0 else (*unique[:MOST_NOTES], f"{more:,} more names did not work either.")
