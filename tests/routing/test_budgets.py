"""Budgets: what is used of them, who may still begin a turn, and what a person's raise changes."""

from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from bullpen.routing.budgets import (
    KINDS,
    BudgetUse,
    budget_share,
    budget_uses,
    reached_by,
    that_fit,
    untold,
    with_raised,
    with_told,
)
from bullpen.routing.progress import MemberUsage, Progress, with_usage
from bullpen.routing.queue import WaitingTurn
from bullpen.team.team import Budget, Member, Team

KIM = Member(name="kim", type="human")


def team_of(budget: Budget | None = None, **of_members: Budget) -> Team:
    agents = tuple(Member(name=name, type="ai", budget=own) for name, own in of_members.items())
    return Team(name="t", members=(KIM, *agents), lead=agents[0].name, budget=budget or Budget())


def turn(member: str, number: int = 1) -> WaitingTurn:
    return WaitingTurn(id=str(number), member=member, message_id="msg-1")


def used(**by: MemberUsage) -> Progress:
    return Progress(used=by)


def test_a_conversations_budget_counts_everyone_and_a_members_its_own() -> None:
    team = team_of(Budget(tokens=1_000), max=Budget(tokens=500), eva=Budget())
    progress = used(max=MemberUsage(turns=2, tokens=300), eva=MemberUsage(turns=1, tokens=400))
    assert budget_uses(team, progress, {"max": MemberUsage(turns=1, tokens=150)}) == (
        BudgetUse(kind="tokens", amount=1_000, cap=1_000, used=850),
        BudgetUse(member="max", kind="tokens", amount=500, cap=500, used=450),
    )


def test_every_kind_is_counted_and_said_in_words() -> None:
    team = team_of(max=Budget(turns=5, tokens=50_000, cost_usd=2, minutes=10))
    spent = MemberUsage(turns=4, tokens=41_000, cost_usd=2.5, is_estimate=True, seconds=540)
    uses = budget_uses(team, used(max=spent))
    assert [one.sentence for one in uses] == [
        "max has taken 4 turns of its budget of 5 turns (80 %).",
        "max has used 41k tokens of its budget of 50k tokens (82 %).",
        "max has used ~$2.50: its budget of $2.00 is used up.",
        "max has worked for 9 min 00 s of its budget of 10 min 00 s (90 %).",
    ]
    (whole,) = budget_uses(team_of(Budget(cost_usd=2), max=Budget()), used(max=MemberUsage(cost_usd=2.0)))
    assert whole.sentence == "The agents have used $2.00: the conversation's budget of $2.00 is used up."


def test_the_share_of_a_member_is_that_of_what_it_has_used_most() -> None:
    team = team_of(max=Budget(turns=10, tokens=100), eva=Budget())
    progress = used(max=MemberUsage(turns=2, tokens=90), eva=MemberUsage(turns=9))
    assert budget_share(progress, team.member("max")) == 0.9
    assert budget_share(progress, team.member("eva")) is None
    lifted = with_raised(progress, [one for one in budget_uses(team, progress) if one.kind == "tokens"], always=True)
    assert budget_share(lifted, team.member("max")) == 0.2


def test_a_members_budget_stops_it_alone_and_the_conversations_everyone() -> None:
    team = team_of(max=Budget(tokens=100), eva=Budget())
    uses = budget_uses(team, used(max=MemberUsage(tokens=100)))
    assert that_fit([turn("max", 1), turn("eva", 2)], uses) == (turn("eva", 2),)
    assert (reached_by(uses, "max"), reached_by(uses, "eva")) == (uses[0], None)
    uses = budget_uses(team_of(Budget(tokens=100), max=Budget(), eva=Budget()), used(max=MemberUsage(tokens=100)))
    assert that_fit([turn("max", 1), turn("eva", 2)], uses) == ()
    assert reached_by(uses, "eva") == uses[0]


def test_no_more_turns_begin_together_than_are_left() -> None:
    team = team_of(Budget(turns=3), max=Budget(turns=1), eva=Budget(), ada=Budget())
    asked = [turn("max", 1), turn("max", 2), turn("eva", 3), turn("ada", 4)]
    assert that_fit(asked, budget_uses(team, Progress())) == (asked[0], asked[2], asked[3])
    running = {"eva": MemberUsage(turns=1)}
    assert that_fit(asked, budget_uses(team, Progress(), running)) == (asked[0], asked[2])
    assert that_fit(asked, budget_uses(team, used(eva=MemberUsage(turns=2)), running)) == ()


def test_a_turn_that_was_let_in_is_not_ended_by_the_count_of_turns() -> None:
    (use,) = budget_uses(team_of(max=Budget(turns=1)), Progress(), {"max": MemberUsage(turns=1)})
    assert use.is_reached
    assert not use.ends_turns


def test_people_are_told_once_for_each_cap() -> None:
    team = team_of(max=Budget(tokens=100))
    progress = used(max=MemberUsage(tokens=79))
    assert untold(budget_uses(team, progress), progress) == ()
    progress = used(max=MemberUsage(tokens=80))
    uses = budget_uses(team, progress)
    assert untold(uses, progress) == uses
    told = with_told(progress, uses)
    assert untold(budget_uses(team, told), told) == ()
    raised = with_raised(told, budget_uses(team, told), always=False)
    assert untold(budget_uses(team, raised), raised) == ()
    more = with_usage(raised, "max", MemberUsage(tokens=80))
    assert [one.used for one in untold(budget_uses(team, more), more)] == [160]


def test_a_raise_gives_the_same_amount_again_from_what_is_used() -> None:
    team = team_of(max=Budget(tokens=100))
    progress = used(max=MemberUsage(tokens=350))
    raised = with_raised(progress, budget_uses(team, progress), always=False)
    assert [one.cap for one in budget_uses(team, raised)] == [450]
    again = with_raised(raised, budget_uses(team, raised), always=False)
    assert [one.cap for one in budget_uses(team, again)] == [550]
    generous = team_of(max=Budget(tokens=1_000))
    assert [one.cap for one in budget_uses(generous, again)] == [1_000], "the team file may give more by now"
    assert budget_uses(team, with_raised(again, budget_uses(team, again), always=True)) == ()


NAMES = ("max", "eva", "ada")
BUDGETS = st.builds(
    Budget,
    turns=st.none() | st.integers(1, 6),
    tokens=st.none() | st.integers(1, 3_000),
    cost_usd=st.none() | st.floats(0.01, 3),
    minutes=st.none() | st.floats(0.01, 30),
)
REPORTS = st.builds(
    MemberUsage, tokens=st.integers(0, 900), cost_usd=st.floats(0, 1), seconds=st.floats(0, 400), turns=st.just(0)
)
STEPS = st.lists(
    st.tuples(st.just("begin"), st.lists(st.sampled_from(NAMES), min_size=1, max_size=4))
    | st.tuples(st.just("report"), st.integers(0, 5), REPORTS)
    | st.tuples(st.just("end"), st.integers(0, 5))
    | st.tuples(st.just("raise"), st.integers(0, 9)),
    max_size=60,
)


class Played:
    """A conversation that follows the rules: who begins, and who is ended when nothing is left."""

    def __init__(self, team: Team) -> None:
        self.team = team
        self.progress = Progress()
        self.running: dict[int, tuple[str, MemberUsage]] = {}
        self.largest = MemberUsage()
        self.began = 0

    @property
    def uses(self) -> tuple[BudgetUse, ...]:
        now: dict[str, MemberUsage] = {}
        for member, so_far in self.running.values():
            now[member] = now.get(member, MemberUsage()) + so_far
        return budget_uses(self.team, self.progress, now)

    def begin(self, names: list[str]) -> None:
        asked = [turn(name, self.began + place) for place, name in enumerate(names)]
        for one in that_fit(asked, self.uses):
            self.running[int(one.id)] = one.member, MemberUsage(turns=1)
        self.began += len(names)

    def report(self, number: int, more: MemberUsage) -> None:
        if not self.running:
            return
        chosen = list(self.running)[number % len(self.running)]
        member, so_far = self.running[chosen]
        self.running[chosen] = member, so_far + more
        own = self.running[chosen][1]
        self.largest = MemberUsage(
            tokens=max(self.largest.tokens, own.tokens),
            cost_usd=max(self.largest.cost_usd or 0.0, own.cost_usd or 0.0),
            seconds=max(self.largest.seconds, own.seconds),
        )
        reached = [one for one in self.uses if one.ends_turns]
        for other in [key for key, (name, _) in self.running.items() if any(one.is_of(name) for one in reached)]:
            self.end(other)

    def end(self, key: int) -> None:
        member, so_far = self.running.pop(key)
        self.progress = with_usage(self.progress, member, so_far)

    def check(self) -> None:
        beyond = {"turns": 0.0, "tokens": self.largest.tokens, "cost_usd": self.largest.cost_usd or 0.0}
        beyond["minutes"] = self.largest.seconds / 60
        assert set(beyond) == set(KINDS)
        for one in self.uses:
            assert one.used <= one.cap + beyond[one.kind] + 1e-6, one.sentence


@given(budget=BUDGETS, own=st.lists(BUDGETS, min_size=3, max_size=3), steps=STEPS)
def test_no_cap_is_passed_by_more_than_one_turns_own_usage(
    budget: Budget, own: list[Budget], steps: list[tuple[object, ...]]
) -> None:
    played = Played(team_of(budget, **dict(zip(NAMES, own, strict=True))))
    for step in steps:
        match step:
            case ("begin", list(names)):
                played.begin(names)
            case ("report", int(number), MemberUsage() as more):
                played.report(number, more)
            case ("end", int(number)) if played.running:
                played.end(list(played.running)[number % len(played.running)])
            case ("raise", int(number)) if played.uses:
                uses = played.uses
                played.progress = with_raised(played.progress, [uses[number % len(uses)]], always=number == 9)
        played.check()


def test_what_is_lifted_stays_lifted_beside_other_kinds() -> None:
    team = team_of(max=Budget(turns=1, tokens=1))
    progress = used(max=MemberUsage(turns=1, tokens=1))
    lifted = with_raised(progress, [replace(budget_uses(team, progress)[0])], always=True)
    assert [one.kind for one in budget_uses(team, lifted)] == ["tokens"]
