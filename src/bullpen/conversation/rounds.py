"""Best of several: what turns, people and judges change in a round. Pure functions that return entries, or raise."""

from collections.abc import Collection, Iterator, Sequence
from random import SystemRandom

from msgspec import UNSET
from msgspec.structs import replace

from bullpen.context.history import message_number
from bullpen.conversation.entry import Change, Entry
from bullpen.conversation.events import Decided, Queued, Said, Unallowed, Unpicked
from bullpen.conversation.state import ConversationState
from bullpen.errors import NothingToPick
from bullpen.markers.grammar import DEFAULT_INTENT, Markers, read_markers
from bullpen.messages import ConversationMessage, Routing, Speaker
from bullpen.routing.progress import Progress
from bullpen.routing.queue import WaitingTurn
from bullpen.routing.rounds import Candidate, CandidateState, Round
from bullpen.routing.router import Route
from bullpen.text.names import listed, normalized

BULLPEN = Speaker(role_id="bullpen", role_name="bullpen", type="system")
"""Who says what was picked: nobody of the team."""
FREE: tuple[CandidateState, ...] = ("done", "failed", "apart")
"""What may be dropped."""
LEFT_OUT = "left out: {judge} picks among the others"


def new_round(route: Route, turns: Sequence[WaitingTurn], sender: str) -> dict[str, Round]:
    """Return the round that a message begins, if it does."""
    if not route.is_best_of or not turns:
        return {}
    candidates = tuple(Candidate(turn=turn.id, member=turn.member, place=turn.id) for turn in turns)
    judge = route.judge
    begun = Round(
        message_id=turns[0].message_id,
        candidates=candidates,
        judge="" if judge is None else judge.member,
        judge_asked_by=sender if judge is not None and judge.needs_yes else "",
    )
    return {turns[0].id: begun}


# What follows from an entry of any kind


def follow(state: ConversationState, entry: Entry) -> Entry:
    """Return an entry with what it changes in rounds: turns that end, are dropped, retried or handed to another."""
    progress = state.progress if entry.change.progress is UNSET else entry.change.progress
    rounds = {key: _after(one, entry, progress) for key, one in progress.rounds.items()}
    if rounds == progress.rounds:
        return entry
    return replace(entry, change=replace(entry.change, progress=replace(progress, rounds=rounds)))


def _after(one: Round, entry: Entry, progress: Progress) -> Round:
    candidates = tuple(new for old in one.candidates for new in _candidates_after(old, entry, progress))
    one = replace(one, candidates=candidates)
    if one.state == "asking" and one.in_state("waiting"):
        one = replace(one, state="working", why_asked="", is_asked=False)
    if one.state == "asking" and _is_left(one, progress):
        return replace(one, state="decided", is_told=False)
    return _judged(one, entry, progress) if one.judge_turn and one.state in ("judging", "asking") else one


def _is_left(one: Round, progress: Progress) -> bool:
    """Return whether a person has skipped every turn of a round in which nobody has a result: nothing is to pick."""
    open_turns = {one.judge_turn, *(candidate.turn for candidate in one.candidates)}
    return not one.in_state("done") and open_turns.isdisjoint(progress.undecided)


def _candidates_after(one: Candidate, entry: Entry, progress: Progress) -> tuple[Candidate, ...]:
    if one.state not in ("waiting", "failed"):
        return (one,)
    if entry.retries == one.turn:
        return (replace(one, turn=entry.turns[0].id, tries=(*one.tries, one.turn), state="waiting"),)
    if one.state == "failed" and (instead := _in_its_place(entry, one.turn)) is not None:
        return one, Candidate(turn=instead.id, member=instead.member, place=instead.id)
    if any(turn.id == one.turn for turn in entry.drops):
        # What an earlier try has done is still there.
        return (replace(one, state="gone" if one.turn == one.place else "failed"),)
    if entry.ends is not None and entry.ends.turn_id == one.turn:
        return (replace(one, state="failed" if entry.message is None else "done"),)
    return (replace(one, state="failed"),) if one.turn in progress.undecided else (one,)


def _in_its_place(entry: Entry, turn: str) -> WaitingTurn | None:
    """Return the turn in which another member answers in the place of one that did not."""
    is_about = any(isinstance(event, Decided) and event.turn_id == turn for event in entry.events)
    return entry.turns[0] if is_about and entry.turns and entry.retries is None else None


def _judged(one: Round, entry: Entry, progress: Progress) -> Round:
    turn = one.judge_turn
    again = entry.turns[0] if entry.retries == turn else _in_its_place(entry, turn)
    if again is not None and one.state == "asking":
        return replace(one, judge=again.member, judge_turn=again.id, state="judging", why_asked="", is_asked=False)
    if any(dropped.id == turn for dropped in entry.drops):
        return replace(one, state="asking", why_asked=f"The turn in which {one.judge} was to pick was dropped.")
    if entry.ends is not None and entry.ends.turn_id == turn and entry.message is not None:
        return _with_verdict(one, read_markers(entry.message.content))
    if turn in progress.undecided and one.state == "judging":
        return replace(one, state="asking", why_asked=f"{one.judge} did not pick: its turn {turn} has no reply.")
    return one


def _with_verdict(one: Round, markers: Markers) -> Round:
    letter = markers.pick
    picks = [one.called(marker.value) for marker in markers if marker.kind == "pick"]
    chosen = picks[-1] if picks else None
    if any(other != chosen for other in picks):
        # One of them may be what a result says itself, repeated by the judge.
        return replace(one, state="asking", why_asked=f"{one.judge} picked more than one result.")
    if chosen is not None and chosen.state == "done":
        return replace(one.with_candidate(chosen.turn, "picked"), state="decided", picked_by=one.judge)
    if letter is None:
        why = f"{one.judge} did not write [PICK: …]."
    else:
        why = f"{one.judge} picked {letter[:100]!r}, which is not one of {listed(map(one.letter_of, one.to_judge))}."
    return replace(one, state="asking", why_asked=why)


# What happens next


def next_step(state: ConversationState, agents: Collection[str], *, may_judge: bool, at: int) -> Entry | None:
    """Return what follows when all candidates of a round have ended: a judge or a person is asked. None: nothing."""
    for key, one in state.progress.rounds.items():
        if one.state == "working" and not one.in_state("waiting"):
            if not one.in_state("done", "failed"):
                return _changed(state, key, replace(one, state="decided", is_told=True), at=at)
            if one.judge in agents and may_judge and len(one.in_state("done")) > 1:
                return _ask_judge(state, key, one, at)
            return _ask_people(state, key, replace(one, why_asked=_why_no_judge(one)), at)
        if one.state == "asking" and not one.is_asked:
            return _ask_people(state, key, one, at)
    return None


def _why_no_judge(one: Round) -> str:
    if not one.judge:
        return ""
    return (
        f"{one.judge} was not asked to pick{'' if len(one.in_state('done')) > 1 else ': there is nothing to choose'}."
    )


def _ask_judge(state: ConversationState, key: str, one: Round, at: int) -> Entry:
    order = [candidate.turn for candidate in one.in_state("done")]
    SystemRandom().shuffle(order)
    turn = state.new_turn(one.judge, one.message_id, intent=DEFAULT_INTENT, step=1)
    failed = [candidate.turn for candidate in one.in_state("failed")]
    progress = _without_undecided(state.progress, failed)
    asked_by = one.judge_asked_by
    unallowed = {**progress.unallowed, **({turn.id: asked_by} if asked_by else {})}
    progress = replace(progress, turns_made=progress.turns_made + 1, unallowed=unallowed)
    judging = replace(one, state="judging", judge_turn=turn.id, order=tuple(order))
    left_out = (Decided(turn_id=failure, choice=LEFT_OUT.format(judge=one.judge)) for failure in failed)
    question = (Unallowed.of(turn, asked_by),) if asked_by else ()
    return Entry(
        at=at,
        turns=(turn,),
        change=Change(progress=replace(progress, rounds={**progress.rounds, key: judging})),
        events=(*left_out, Queued(turns=(turn,)), *question),
    )


def _ask_people(state: ConversationState, key: str, one: Round, at: int) -> Entry:
    asking = replace(one, state="asking", is_asked=True)
    entry = _changed(state, key, asking, at=at)
    change = replace(entry.change, waits_for=state.progress.person)
    return replace(entry, change=change, events=(Unpicked.of(key, asking),))


# What people decide


def pick(state: ConversationState, person: str, name: str, turn: str | None, *, at: int) -> Entry:
    """Pick one result, given by its member or its turn; it is merged as soon as nobody edits the shared folder."""
    key, one, candidate = _named(state, name, turn, ("done", "failed", "picked", "merged", "apart"))
    if candidate.turn in state.progress.conflicts:
        raise NothingToPick(f"{candidate.member}'s result is picked, and conflicts: /take, /keep, /resolve or /apart.")
    if candidate.state == "merged":
        raise NothingToPick(f"What {candidate.member} did is merged already. If it was taken back: /redo.")
    if candidate.state == "failed":
        raise NothingToPick(f"{candidate.member} has no result: turn {candidate.turn} ended without a reply.")
    settled = [other.turn for other in one.in_state("failed")]
    progress = _without_undecided(state.progress, [*settled, one.judge_turn])
    # Who picks it again, because it could not be merged, says nothing new.
    is_told = one.is_told and candidate.state == "picked"
    decided = replace(one.with_candidate(candidate.turn, "picked"), state="decided", picked_by=person, is_told=is_told)
    change = Change(progress=replace(progress, rounds={**progress.rounds, key: decided}))
    return Entry(at=at, change=change, events=(Decided(turn_id=candidate.turn, choice="picked"),))


def droppable(state: ConversationState) -> tuple[Candidate, ...]:
    """Return all that are left of the last round, and would be removed together; raise if there are none."""
    return _latest(state, None, FREE)[1].in_state(*FREE)


def discard(state: ConversationState, name: str | None, turn: str | None, *, at: int) -> Entry:
    """Remove results that were not picked: one, given by its member or its turn, or all that are left of a round."""
    if name is not None:
        key, one, candidate = _named(state, name, turn, FREE)
        chosen: Sequence[Candidate] = [candidate]
    else:
        key, one = _latest(state, turn, FREE)
        chosen = one.in_state(*FREE)
    for candidate in chosen:
        one = one.with_candidate(candidate.turn, "gone")
    progress = _without_undecided(state.progress, [candidate.turn for candidate in chosen])
    if one.state == "asking" and not one.in_state("done"):
        # Nothing is left to pick.
        progress = _without_undecided(progress, [*(other.turn for other in one.in_state("failed")), one.judge_turn])
        one = replace(one, state="decided", is_told=False)
    change = Change(progress=replace(progress, rounds={**progress.rounds, key: one}))
    events = tuple(Decided(turn_id=candidate.turn, choice="dropped") for candidate in chosen)
    return Entry(at=at, change=change, events=events)


def _named(
    state: ConversationState, name: str, turn: str | None, states: Collection[CandidateState]
) -> tuple[str, Round, Candidate]:
    found = [
        (key, one, candidate)
        for key, one in _newest(state, turn)
        for candidate in one.candidates
        if candidate.state in states and name.strip() and _is_called(candidate, name)
    ]
    known = [one for _, one in _newest(state, turn) for candidate in one.candidates if _is_called(candidate, name)]
    # A member is named for its newest result; an older one can be named by its turn.
    if known and known[0].state in ("working", "judging"):
        raise NothingToPick(_not_yet(known[0]))
    if not found:
        raise NothingToPick(f"There is no result of {name!r} to pick or drop. {_what_there_is(state)}".strip())
    # What a person is asked about comes before what was decided long ago.
    found.sort(key=lambda one: one[1].state == "decided")
    if found[0][1].state in ("working", "judging"):
        raise NothingToPick(_not_yet(found[0][1]))
    if len({key for key, one, _ in found if one.state == "asking"}) > 1:
        turns = listed(f"turn {other.turn}" for _, one, other in found if one.state == "asking")
        raise NothingToPick(f"{found[0][2].member} has several results: {turns}. Say the number instead of the name.")
    return found[0]


def _latest(state: ConversationState, turn: str | None, states: Collection[CandidateState]) -> tuple[str, Round]:
    rounds = [(key, one) for key, one in _newest(state, turn) if one.in_state(*states)]
    rounds.sort(key=lambda found: found[1].state == "decided")
    if not rounds:
        raise NothingToPick(f"There is nothing to drop. {_what_there_is(state)}".strip())
    if rounds[0][1].state in ("working", "judging"):
        raise NothingToPick(_not_yet(rounds[0][1]))
    if len(asking := [key for key, one in rounds if one.state == "asking"]) > 1:
        words = " or ".join(f"/discard all {key}" for key in reversed(asking))
        raise NothingToPick(f"Several tasks wait for a pick. Which one do you mean: {words}?")
    return rounds[0]


def _newest(state: ConversationState, turn: str | None = None) -> Iterator[tuple[str, Round]]:
    """Yield the rounds, the newest first; with a turn, only the one that it belongs to."""
    for key, one in reversed(list(state.progress.rounds.items())):
        if turn is None or turn == key or one.candidate(turn) is not None:
            yield key, one


def _is_called(candidate: Candidate, name: str) -> bool:
    return name.strip() == candidate.turn or normalized(name) == normalized(candidate.member)


def _not_yet(one: Round) -> str:
    if one.state == "judging":
        return f"{one.judge} is picking (turn {one.judge_turn}). Wait, or cancel that turn to pick yourself."
    names = listed(candidate.member for candidate in one.in_state("waiting"))
    return f"Not everybody is done: {names}. Wait, or cancel their turns."


def _what_there_is(state: ConversationState) -> str:
    left = [c.member for _, one in _newest(state) for c in one.in_state("done", "apart")]
    return f"There are results of {listed(dict.fromkeys(left))}." if left else ""


# What became of it


def became(state: ConversationState, turn: str, new: CandidateState, *, at: int) -> Entry:
    """Note what became of a candidate's work."""
    return Entry(at=at, change=Change(progress=with_state(state.progress, turn, new)))


def with_state(progress: Progress, turn: str, new: CandidateState) -> Progress:
    """Return the progress with a candidate in another state, if the turn is a candidate's."""
    rounds = {key: one.with_candidate(turn, new) for key, one in progress.rounds.items()}
    return progress if rounds == progress.rounds else replace(progress, rounds=rounds)


def without_round(state: ConversationState, key: str, *, at: int) -> Entry:
    """Forget a round of which nothing is left."""
    rounds = {other: one for other, one in state.progress.rounds.items() if other != key}
    return Entry(at=at, change=Change(progress=replace(state.progress, rounds=rounds)))


def told(state: ConversationState, key: str, *, message_id: str, at: int) -> Entry:
    """Say in the conversation what was picked, so that everybody knows, also every agent in its next prompt."""
    one = state.progress.rounds[key]
    number = max(state.progress.message_number, message_number(message_id))
    progress = replace(state.progress, message_number=number)
    rounds = {**progress.rounds, key: replace(one, is_told=True)}
    message = ConversationMessage(
        id=message_id,
        content=verdict(one),
        speaker=BULLPEN,
        timestamp=at,
        routing=Routing(parent_message_id=one.message_id),
    )
    said = Said(sequence=state.messages + 1, message=message)
    return Entry(at=at, message=message, said=said, change=Change(progress=replace(progress, rounds=rounds)))


def verdict(one: Round) -> str:
    """Return what was picked and what was not, with the neutral names that a judge knew them by."""
    picked = one.in_state("picked", "merged", "apart")
    others = [candidate for candidate in one.candidates if candidate not in picked]
    chosen = f"{one.picked_by} picked the result of {listed(_called(one, candidate) for candidate in picked)}."
    rest = f" Not picked: {listed(_called(one, candidate) for candidate in others)}." if others else ""
    stays = " What was not picked stays until /discard." if one.in_state("done", "failed") else ""
    return f"{chosen if picked else 'No result was picked.'}{rest}{stays}"


def _called(one: Round, candidate: Candidate) -> str:
    letter = one.letter_of(candidate.turn)
    parts = [f"turn {candidate.turn}", f"it was {letter}" if letter else ""]
    return f"{candidate.member} ({', '.join(filter(None, parts))})"


def _changed(state: ConversationState, key: str, one: Round, *, at: int) -> Entry:
    progress = replace(state.progress, rounds={**state.progress.rounds, key: one})
    return Entry(at=at, change=Change(progress=progress))


def _without_undecided(progress: Progress, turns: Collection[str]) -> Progress:
    return replace(progress, undecided=tuple(turn for turn in progress.undecided if turn not in turns))
