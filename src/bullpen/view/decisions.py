"""What a person is asked to decide, the most urgent first. Pure."""

from collections import Counter
from collections.abc import Collection, Iterable, Sequence
from types import MappingProxyType

from msgspec.structs import replace

from bullpen.conversation.events import Asked, Conflicted, LeftByUndo, ProgramsChanged, Unallowed, Unapproved, Unpicked
from bullpen.conversation.state import UndecidedTurn
from bullpen.routing.asks import Asks
from bullpen.routing.missed_hand_overs import MissedHandOver
from bullpen.text.names import listed
from bullpen.text.numbers import counted
from bullpen.view.choices import NO, YES, Choice, Decision, with_keys
from bullpen.view.questions import about_ask, about_question

MOST_PARTIAL = 2_000
"""Characters of what a turn had said that are shown beside the decision."""


def decisions(
    *,
    undecided: Sequence[UndecidedTurn],
    asked: Sequence[Asked] = (),
    asks: Asks = MappingProxyType({}),
    budgets: Sequence[Decision] = (),
    unallowed: Sequence[Unallowed] = (),
    programs: Sequence[ProgramsChanged] = (),
    left: Sequence[LeftByUndo] = (),
    conflicts: Sequence[Conflicted] = (),
    unpicked: Sequence[Unpicked] = (),
    unapproved: Sequence[Unapproved] = (),
    paused: str | None,
    waiting: int,
    held: Sequence[str],
    missed: MissedHandOver | None,
    agents: Iterable[str],
    editors: Sequence[str] = (),
    can_begin: bool = False,
    cancelled: Sequence[UndecidedTurn] = (),
) -> tuple[Decision, ...]:
    """Return everything that waits for a person, the most urgent first. Editors are the agents that may edit files.

    Nobody is asked about a turn that they have cancelled themselves, but while others wait, it can be retried.
    `can_begin` says whether a waiting turn would begin but for a pause.
    """
    names = tuple(agents)
    failed = [_about_turn(ended, names) for ended in reversed(undecided)]
    found = [_about_left(one) for one in reversed(left)]
    found += [_about_conflict(conflict, editors) for conflict in reversed(conflicts)]
    found += [_about_results(asked, is_only=len(unpicked) == 1) for asked in reversed(unpicked)]
    found += [_about_review(asked, is_only=len(unapproved) == 1) for asked in reversed(unapproved)]
    found += [_about_unallowed(asked) for asked in reversed(unallowed)]
    if len(failed) > 1:
        failed[0] = replace(failed[0], choices=(*failed[0].choices, SKIP_ALL))
    if failed and paused is not None:
        # Every decision about a turn also ends the pause: it is one decision, not two.
        more = (*((CONTINUE,) if can_begin else ()), *((DROP,) if waiting else ()))
        failed[0] = replace(failed[0], choices=(*failed[0].choices, *more))
    elif paused is not None:
        more = (*((DROP,) if waiting else ()), *(_retry(one) for one in cancelled[-1:] if one.member in names))
        found.append(Decision(kind="paused", text=paused, choices=(CONTINUE, *more)))
    elif held:
        verb = "is" if len(held) == 1 else "are"
        text = f"{counted(len(held), 'turn')} from before the pause {verb} on hold: {', '.join(held)}."
        found.append(Decision(kind="held", text=text, choices=(CONTINUE, DROP)))
    elif missed is not None and not undecided:
        found.append(_about_missed(missed))
    # To pick another result settles these, too.
    rivals = {candidate.turn for asked in unpicked for candidate in asked.candidates}
    later = [one for one in failed if one.turn in rivals]
    # An agent that asks is waiting: nothing else is as urgent.
    of_turn = Counter(one.turn_id for one in asked)
    questions = [about_question(one, is_only=len(asked) == 1, is_alone=of_turn[one.turn_id] == 1) for one in asked]
    questions += [about_ask(turn, ask) for turn, ask in asks.items()]
    # Without a raise, a turn that is run again would only wait.
    changed = [_about_programs(one) for one in programs]
    everything = (*questions, *changed, *budgets, *(one for one in failed if one not in later), *found, *later)
    return tuple(map(with_keys, everything))


CONTINUE = Choice(action="continue", label="Continue", typed="/continue", purpose="let the waiting turns begin")
DROP = Choice(action="drop", label="Drop the queue", typed="/drop", purpose="remove every waiting turn")
SKIP_ALL = Choice(
    action="skip",
    label="Skip all",
    typed="/skip all",
    purpose="continue without any of the turns that ended without a reply",
    given={"everything": "true"},
)
DISMISS = Choice(action="dismiss", label="Leave it", typed="/dismiss", purpose="leave it as it is")


def _about_turn(ended: UndecidedTurn, agents: Collection[str]) -> Decision:
    turn, given = ended.id, {"turn": ended.id}
    others = tuple(name for name in agents if name != ended.member)
    skip = Choice(action="skip", label="Skip", typed=f"/skip {turn}", purpose="continue without it", given=given)
    return Decision(
        kind="failed",
        text=ended.sentence,
        hint=ended.hint,
        turn=turn,
        member=ended.member,
        partial_text=shortened_partial(ended),
        others=others,
        choices=(
            *((_retry(ended),) if ended.member in agents else ()),
            skip,
            *_by_another("hand-over", "/hand", ("Hand over", "Hand over to {}", "let {} answer"), others, turn),
        ),
    )


def _by_another(
    action: str, command: str, words: tuple[str, str, str], names: Sequence[str], turn: str
) -> tuple[Choice, ...]:
    """Return the answer that lets another member do something about a turn: the only one, or one who is named then."""
    label, label_of_one, purpose = words
    if not names:
        return ()
    name = names[0] if len(names) == 1 else ""
    choice = Choice(
        action=action,
        label=label_of_one.format(name) if name else label,
        typed=f"{command} {name or 'NAME'} {turn}",
        purpose=purpose.format(name or "another agent"),
        given={"turn": turn, "member": name} if name else {"turn": turn},
        begins="" if name else f"{command} ",
        lacks_name=not name,
    )
    return (choice,)


def _retry(ended: UndecidedTurn) -> Choice:
    given = {"turn": ended.id}
    return Choice(action="retry", label="Retry", typed=f"/retry {ended.id}", purpose="run the turn again", given=given)


def _about_unallowed(asked: Unallowed) -> Decision:
    turn, given, member = asked.turn.id, {"turn": asked.turn.id}, asked.turn.member
    allow = Choice(
        action="allow",
        label="Allow",
        typed=f"/allow {turn}",
        purpose=f"yes, let {member} answer",
        given=given,
        key=YES,
        is_risky=True,
    )
    dismiss = Choice(
        action="dismiss",
        label="Don't allow",
        typed=f"/dismiss {turn}",
        purpose=f"no, drop the turn of {member}",
        given=given,
        key=NO,
    )
    return Decision(kind="allow", text=asked.text, turn=turn, member=member, choices=(allow, dismiss))


def _about_programs(changed: ProgramsChanged) -> Decision:
    turn, given = changed.turn_id, {"turn": changed.turn_id}
    keep = Choice(
        action="allow",
        label="Keep",
        typed=f"/allow {turn}",
        purpose=f"keep these files as {changed.member} made them, and let agents begin",
        given=given,
        key=YES,
        is_risky=True,
    )
    undo = Choice(
        action="dismiss",
        label="Put back",
        typed=f"/dismiss {turn}",
        purpose="put these files back to what they were before that turn, and let agents begin",
        given=given,
        key=NO,
    )
    text = f"{changed.text} /diff {turn} shows what changed."
    choices = (keep, undo) if changed.can_be_undone else (keep,)
    return Decision(kind="programs", text=text, turn=turn, member=changed.member, choices=choices)


def _about_left(left: LeftByUndo) -> Decision:
    turn = left.turn_id
    back = Choice(
        action="undo",
        label="Take back",
        typed=f"/undo {turn} all",
        purpose="take that back, too; /redo brings it back",
        given={"turn": turn, "everything": "true"},
        key=YES,
        is_risky=True,
    )
    leave = Choice(
        action="dismiss",
        label="Leave it",
        typed=f"/dismiss {turn}",
        purpose="leave these files as they are",
        given={"turn": turn},
        key=NO,
    )
    return Decision(kind="left", text=left.text, turn=turn, member=left.member, choices=(back, leave))


def _about_conflict(conflict: Conflicted, editors: Sequence[str]) -> Decision:
    turn, given, member = conflict.turn_id, {"turn": conflict.turn_id}, conflict.member
    take = Choice(
        action="take",
        label=f"Take {member}'s",
        typed=f"/take {turn}",
        purpose=f"put the versions of {member} into the shared folder",
        given=given,
    )
    keep = Choice(
        action="keep",
        label="Keep shared",
        typed=f"/keep {turn}",
        purpose="keep the shared versions of these files, and bring all else",
        given=given,
    )
    purpose = "put both versions into the files, and let {} resolve it"
    resolve = _by_another("resolve", "/resolve", ("Ask an agent", "Resolve with {}", purpose), editors, turn)
    apart = Choice(
        action="apart",
        label="Leave apart",
        typed=f"/apart {turn}",
        purpose=f"leave all of it in {member}'s own workspace",
        given=given,
    )
    return Decision(
        kind="conflict",
        text=conflict.text,
        turn=turn,
        member=member,
        others=tuple(editors),
        choices=(take, keep, *resolve, apart),
    )


def _about_results(asked: Unpicked, *, is_only: bool) -> Decision:
    given = {"turn": asked.round}
    done = tuple(candidate.member for candidate in asked.candidates if candidate.state == "done")
    pick = Choice(
        action="pick",
        label="Pick one",
        typed="/pick NAME" if is_only else "/pick TURN",
        purpose="bring one result into the shared folder; /compare shows all of them",
        given=given,
        begins="/pick ",
        lacks_name=True,
    )
    discard = Choice(
        action="discard",
        label="Drop all",
        typed="/discard all" if is_only else f"/discard all {asked.round}",
        purpose=f"pick none, and drop what {listed(candidate.member for candidate in asked.candidates)} did",
        given={**given, "everything": "true"},
    )
    return Decision(
        kind="pick",
        text=asked.text,
        turn=asked.round,
        others=done,
        choices=(*((pick,) if done else ()), discard),
    )


def _about_review(asked: Unapproved, *, is_only: bool) -> Decision:
    given, which = {"member": asked.builder}, "" if is_only else f" {asked.builder}"
    again = Choice(
        action="again",
        label="One more round",
        typed=f"/again{which}",
        purpose=f"one more round: {asked.builder} gets what was asked for, or {asked.reviewer} is asked again",
        given=given,
    )
    end = Choice(
        action="end-review",
        label="End the review",
        typed=f"/end-review{which}",
        purpose="end it without an approval; everything stays as it is",
        given=given,
    )
    return Decision(kind="review", text=asked.text, turn=asked.turn_id, member=asked.builder, choices=(again, end))


def shortened_partial(ended: UndecidedTurn) -> str:
    """Return the beginning of what a turn had said; the record of the turn has all of it."""
    text = ended.failure.partial_text if ended.failure else ""
    return (
        text if len(text) <= MOST_PARTIAL else f"{text[:MOST_PARTIAL]}\n… {len(text) - MOST_PARTIAL:,} more characters"
    )


def _about_missed(missed: MissedHandOver) -> Decision:
    names = ", ".join(missed.members)
    ask = Choice(
        action="ask",
        label=f"Ask {names}",
        typed=f"/next {names}",
        purpose=f"ask {names} now{', with full permissions' if missed.needs_yes else ''}",
        given={"names": names},
        key=YES,
        is_risky=missed.needs_yes,
    )
    leave = replace(DISMISS, key=NO)
    return Decision(kind="missed", text=missed.sentence, member=missed.sender, choices=(ask, leave))
