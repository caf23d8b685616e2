"""Reviews: what turns and people change in one, and when a reviewer is asked. Pure functions that return entries."""

from collections.abc import Iterator, Mapping

from msgspec import UNSET
from msgspec.structs import replace

from bullpen.context.history import message_number
from bullpen.conversation.entry import Change, Entry
from bullpen.conversation.events import Decided, Dropped, Offered, Queued, Said, Unapproved
from bullpen.conversation.review_words import NOT_REVIEWED, changed_since, ended, please_review
from bullpen.conversation.state import ConversationState
from bullpen.errors import NothingToReview
from bullpen.file_changes import FolderChanges
from bullpen.markers.grammar import DEFAULT_INTENT, Markers, read_markers
from bullpen.messages import ConversationMessage, Routing, Speaker
from bullpen.routing.progress import Progress, counting_again, without_questions
from bullpen.routing.queue import PUT_FIRST, WaitingTurn
from bullpen.routing.reviews import OVER, Review, ReviewRound, Reviews, asking, judged, review_of, verdict_of
from bullpen.routing.router import Asked, Route
from bullpen.team.team import BULLPEN, Member, Team
from bullpen.text.names import listed, normalized

ONE_MORE = "one more round"
AFTER_VERDICT = ("judged", "asking", *OVER)
SYSTEM = Speaker(role_id=BULLPEN, role_name=BULLPEN, type="system")


# What a reply asks for


def routed(
    team: Team, progress: Progress, agent: Member, turn: WaitingTurn, text: str, markers: Markers, route: Route
) -> Route:
    """Return whom a reply asks: a verdict decides who is next, and a builder need not ask its reviewer by itself."""
    notes = route.notes
    one = awaited(progress.reviews, turn, agent, markers)
    if is_unasked(team, progress, agent, turn, markers):
        notes = (*notes, NOT_REVIEWED.format(name=agent.name))
    if one is not None:
        return _after_verdict(one, progress, text, markers, replace(route, notes=notes))
    reviewer = team.reviewer_of(agent.name)
    asked = {one.member for one in route.asked}
    if reviewer is not None and asked == {reviewer.name} and turn.id not in progress.apart:
        # It is asked when it is known what was changed.
        return replace(route, asked=(), notes=notes)
    return replace(route, notes=notes)


def is_unasked(team: Team, progress: Progress, agent: Member, turn: WaitingTurn, markers: Markers) -> bool:
    """Return whether a reply has a verdict that nobody has asked for, where others have reviewers."""
    has_reviewers = any(member.reviews for member in team.members)
    return bool(markers.verdicts) and has_reviewers and awaited(progress.reviews, turn, agent, markers) is None


def awaited(reviews: Reviews, turn: WaitingTurn, agent: Member, markers: Markers) -> Review | None:
    """Return the review in which a reply gives the verdict; a person may ask the reviewer for one that was missing."""
    one = review_of(reviews, turn.id) or reviews.get(agent.reviews)
    if one is None or one.reviewer != agent.name:
        return None
    is_asked_again = one.state == "asking" and bool(one.rounds) and bool(markers.verdicts)
    return one if one.turn == turn.id or is_asked_again else None


def _after_verdict(one: Review, progress: Progress, text: str, markers: Markers, route: Route) -> Route:
    verdict = verdict_of(text, markers, hands_back=route.addressees == (one.builder,))
    others = [name for name in route.addressees if name != one.builder]
    notes = route.notes
    if others:
        notes = (*notes, f"{one.reviewer} reviews here, so its hand-over to {listed(others)} is not followed.")
    after = Route(team_task=route.team_task, notes=notes, waits_for=progress.person)
    if verdict != "changes" or not one.has_rounds_left:
        return after
    back = Asked(member=one.builder, intent=PUT_FIRST, step=0)
    return replace(after, asked=(back,), addressees=(one.builder,), waits_for=None)


# What follows from an entry of any kind


def follow(team: Team, state: ConversationState, entry: Entry) -> Entry:
    """Return an entry with what it changes in reviews: replies, and turns that are retried, dropped or skipped."""
    progress = state.progress if entry.change.progress is UNSET else entry.change.progress
    reviews = {name: one for name, one in progress.reviews.items() if _is_in(team, one)}
    reviews = {name: _with_lost_turn(one, state, entry, progress) for name, one in reviews.items()}
    drops: tuple[WaitingTurn, ...] = ()
    ended = None if entry.ends is None or entry.message is None else state.running.get(entry.ends.turn_id)
    if entry.message is not None and ended is not None and ended.id not in state.progress.apart:
        reviews, drops = _after_reply(team, state, entry, entry.message, ended, reviews)
    progress, before = replace(progress, reviews=reviews), progress
    if _has_verdict(reviews, state.progress.reviews):
        # A reviewer speaks about the work, not to the person: what the person says next is for the lead.
        progress = replace(progress, handed_over={})
    if progress == before and not drops:
        return entry
    progress = without_questions(progress, (turn.id for turn in drops))
    return replace(
        entry,
        drops=(*entry.drops, *drops),
        change=replace(entry.change, progress=progress),
        events=(*((Dropped(turns=drops),) if drops else ()), *entry.events),
    )


def _has_verdict(now: Reviews, before: Reviews) -> bool:
    """Return whether a review has just got as far as a verdict, or is over."""
    return any(one.state in AFTER_VERDICT and before.get(name) != one for name, one in now.items())


def _is_in(team: Team, one: Review) -> bool:
    reviewer = team.reviewer_of(one.builder)
    return reviewer is not None and reviewer.name == one.reviewer


def _with_lost_turn(one: Review, state: ConversationState, entry: Entry, progress: Progress) -> Review:
    """Return a review after the turn that it waited for was retried, or will not end with a reply."""
    if not one.turn or one.state not in ("building", "reviewing"):
        return one
    if entry.retries == one.turn:
        again = entry.turns[0].id
        rounds = one.rounds if one.state == "building" else (*one.rounds[:-1], replace(one.rounds[-1], turn=again))
        return replace(one, turn=again, rounds=rounds)
    dropped = {turn.id for turn in entry.drops}
    known = {turn.id for turn in (*state.queue.waiting, *state.running.values(), *entry.turns)} - dropped
    if one.turn in known or one.turn in progress.undecided:
        return one
    who = one.builder if one.state == "building" else one.reviewer
    return asking(one, f"Turn {one.turn} of {who} has no reply.")


def _after_reply(
    team: Team,
    state: ConversationState,
    entry: Entry,
    message: ConversationMessage,
    turn: WaitingTurn,
    reviews: dict[str, Review],
) -> tuple[dict[str, Review], tuple[WaitingTurn, ...]]:
    agent = next((member for member in team.agents if member.name == turn.member), None)
    if agent is None:
        return reviews, ()
    markers = read_markers(message.content)
    one = awaited(reviews, turn, agent, markers)
    if one is not None:
        back = next((new.id for new in entry.turns if new.member == one.builder), "")
        verdict = "changes" if back else verdict_of(message.content, markers)
        return {**reviews, one.builder: replace(judged(one, message.id, message.content, verdict), turn=back)}, ()
    reviewer = team.reviewer_of(turn.member)
    if reviewer is None:
        return reviews, ()
    relay = [later for later in state.queue.waiting if _comes_after(later, turn) and later not in entry.drops]
    addressees = message.routing.resolved_addressees if message.routing else ()
    # A builder that hands over to its reviewer is done, even if others answer after it in its relay.
    after = [] if reviewer.name in addressees else [later.member for later in relay]
    others = {*addressees, *(new.member for new in entry.turns), *after} - {reviewer.name}
    one = _with_turn(reviews.get(turn.member), reviewer, turn, message)
    if others or any(isinstance(event, Offered) for event in entry.events):
        # It is not done yet: this turn is reviewed with its next one.
        return {**reviews, turn.member: replace(one, turn="") if one.turn == turn.id else one}, ()
    # The reviewer may be the next one in the relay: it reviews instead.
    drops = tuple(later for later in relay if later.member == reviewer.name)
    return {**reviews, turn.member: _built(one, reviewer, state.progress)}, drops


def _comes_after(later: WaitingTurn, turn: WaitingTurn) -> bool:
    return later.message_id == turn.message_id and later.step > turn.step


def _with_turn(one: Review | None, reviewer: Member, turn: WaitingTurn, message: ConversationMessage) -> Review:
    """Return the review with a turn of the builder that ended well."""
    if one is None or one.is_over:
        one = Review(builder=turn.member, reviewer=reviewer.name, most=reviewer.most_rounds, state="building")
    is_wanted = reviewer.name in (message.routing.resolved_addressees if message.routing else ())
    return replace(one, turns=(*one.turns, turn.id), message_id=message.id, is_wanted=one.is_wanted or is_wanted)


def _built(one: Review, reviewer: Member, progress: Progress) -> Review:
    """Return the review after a turn of the builder that handed over to nobody else."""
    if one.state == "asking":
        if not one.is_asked or progress.since < one.asked_at:
            # Only agents have spoken since: a person still decides.
            return one
        # A person has spoken since: the rounds count from zero, as the limits do.
        one = replace(one, most=one.number + reviewer.most_rounds, why_asked="", is_asked=False)
    return one if one.state in ("reviewing", "judged") else replace(one, state="built", turn="")


# What happens next


def is_being_fixed(state: ConversationState, builder: str) -> bool:
    """Return whether red checks have gone back to a builder, so that what it did is not reviewed yet."""
    returns = state.progress.returns
    undecided = (ended.turn for ended in state.undecided.values())
    turns = (*state.queue.waiting, *state.running.values(), *undecided)
    return any(turn.member == builder and turn.message_id in returns for turn in turns)


def forgotten(state: ConversationState, builder: str, *, at: int) -> Entry:
    """Forget a review that would begin: nothing was changed."""
    reviews = {name: one for name, one in state.progress.reviews.items() if name != builder}
    return Entry(at=at, change=Change(progress=replace(state.progress, reviews=reviews)))


def ask_reviewer(state: ConversationState, builder: str, files: str, *, at: int) -> Entry:
    """Ask the reviewer about what its builder said and changed."""
    one = state.progress.reviews[builder]
    turn = state.new_turn(one.reviewer, one.message_id, intent=DEFAULT_INTENT)
    return Entry(
        at=at,
        turns=(turn,),
        change=Change(progress=_with_round(state.progress, one, turn, files), waits_for=None),
        events=(Queued(turns=(turn,)),),
    )


def ask_again(
    state: ConversationState, builder: str, files: str, changes: FolderChanges | None, *, message_id: str, at: int
) -> Entry:
    """Say that files have changed since the reviewer was asked which approved them, and ask it again."""
    one = state.progress.reviews[builder]
    one = stale(one) if one.state == "judged" else one
    turn = state.new_turn(one.reviewer, message_id, intent=DEFAULT_INTENT)
    text = changed_since(one, changes) if one.rounds and one.rounds[-1].is_stale else please_review(one)
    entry = _message(state, one, text, (one.reviewer,), message_id=message_id, at=at)
    progress = _with_round(_progress(entry), one, turn, files)
    change = Change(progress=progress, waits_for=None)
    return replace(entry, turns=(turn,), change=change, events=(Queued(turns=(turn,)),))


def stale(one: Review) -> Review:
    """Return a review whose approval was for other files."""
    return one.with_last(replace(one.rounds[-1], is_stale=True))


def _with_round(progress: Progress, one: Review, turn: WaitingTurn, files: str) -> Progress:
    turns = one.turns or (one.rounds[-1].turns if one.rounds else ())
    new = ReviewRound(turns=turns, turn=turn.id, files=files)
    reviewing = replace(
        one, state="reviewing", turn=turn.id, turns=(), rounds=(*one.rounds, new), is_wanted=False, is_told=False
    )
    return replace(
        progress,
        turns_made=progress.turns_made + 1,
        reviews={**progress.reviews, one.builder: reviewing},
        missed=None,
    )


def ask_people(state: ConversationState, one: Review, *, at: int) -> Entry:
    """Ask a person what becomes of a review."""
    one = replace(one, is_asked=True, asked_at=at)
    entry = changed(state, one, at=at)
    change = replace(entry.change, waits_for=state.progress.person)
    return replace(entry, change=change, events=(Unapproved.of(one),))


def changed(state: ConversationState, one: Review, *, at: int) -> Entry:
    """Note what became of a review."""
    progress = replace(state.progress, reviews={**state.progress.reviews, one.builder: one})
    return Entry(at=at, change=Change(progress=progress))


def told(state: ConversationState, builder: str, changes: FolderChanges | None, *, message_id: str, at: int) -> Entry:
    """Say in the conversation how a review ended: what was asked for, and what was done."""
    one = state.progress.reviews[builder]
    entry = _message(state, one, ended(one, changes), (), message_id=message_id, at=at)
    progress = _progress(entry)
    reviews = {**progress.reviews, builder: replace(one, is_told=True)}
    change = Change(progress=replace(progress, reviews=reviews))
    return replace(entry, change=change)


def _message(
    state: ConversationState, one: Review, text: str, to: tuple[str, ...], *, message_id: str, at: int
) -> Entry:
    message = ConversationMessage(
        id=message_id,
        content=text,
        speaker=SYSTEM,
        timestamp=at,
        routing=Routing(resolved_addressees=to, parent_message_id=one.message_id),
    )
    number = max(state.progress.message_number, message_number(message_id))
    return Entry(
        at=at,
        message=message,
        change=Change(progress=replace(state.progress, message_number=number)),
        said=Said(sequence=state.messages + 1, message=message),
    )


def _progress(entry: Entry) -> Progress:
    if entry.change.progress is UNSET:
        raise TypeError("an entry without progress")
    return entry.change.progress


# What people decide


def again(state: ConversationState, name: str | None, *, at: int) -> Entry:
    """Let a review continue for one more round: the builder gets what was asked for, or the reviewer is asked again."""
    one = named(state.progress.reviews, name, is_asking=True)
    last = one.rounds[-1] if one.rounds else None
    most = max(one.most, one.number + 1)
    one = replace(one, most=most, why_asked="", is_asked=False)
    progress = counting_again(state.progress, at)
    if last is None or last.verdict != "changes":
        built = replace(one, state="built", turn="")
        return Entry(at=at, change=_decided(progress, built), events=_said_so(one, ONE_MORE))
    turn = state.new_turn(one.builder, last.reply, intent=PUT_FIRST)
    building = replace(one, state="building", turn=turn.id)
    progress = replace(progress, turns_made=progress.turns_made + 1)
    return Entry(
        at=at,
        turns=(turn,),
        change=_decided(progress, building),
        events=(*_said_so(one, ONE_MORE), Queued(turns=(turn,))),
    )


def end(state: ConversationState, person: str, name: str | None, *, at: int) -> Entry:
    """End a review without an approval; a waiting turn of it is dropped."""
    one = named(state.progress.reviews, name, is_asking=False)
    drops = tuple(turn for turn in state.queue.waiting if turn.id == one.turn)
    over = replace(one, state="ended", turn="", turns=(), ended_by=person, is_told=False)
    progress = without_questions(state.progress, (turn.id for turn in drops))
    reviews = {**progress.reviews, one.builder: over}
    change = Change(progress=replace(progress, reviews=reviews))
    dropped = (Dropped(turns=drops),) if drops else ()
    return Entry(at=at, drops=drops, change=change, events=(*_said_so(one, "the review is over"), *dropped))


def _said_so(one: Review, choice: str) -> tuple[Decided, ...]:
    """Return the event that a person has decided about the reviewer's last turn."""
    return (Decided(turn_id=one.rounds[-1].turn, choice=choice),) if one.rounds else ()


def _decided(progress: Progress, one: Review) -> Change:
    reviews = {**progress.reviews, one.builder: one}
    return Change(paused=None, waits_for=None, progress=replace(progress, reviews=reviews))


def named(reviews: Reviews, name: str | None, *, is_asking: bool) -> Review:
    """Return the review that a person means by one of its members, or the only one; raise if there is none."""
    found = [one for one in reviews.values() if (one.state == "asking" if is_asking else not one.is_over)]
    if name is not None:
        found = [one for one in found if normalized(name) in (normalized(one.builder), normalized(one.reviewer))]
    if not found:
        raise NothingToReview(_why_none(reviews, name, is_asking=is_asking))
    if len(found) > 1:
        raise NothingToReview(f"Several reviews are open. Name whose work is meant: {listed(_builders(found))}.")
    return found[0]


def _builders(found: list[Review]) -> Iterator[str]:
    return (one.builder for one in found)


def _why_none(reviews: Mapping[str, Review], name: str | None, *, is_asking: bool) -> str:
    going = [one.sentence for one in reviews.values() if not one.is_over]
    about = f" with {name!r}" if name is not None else ""
    if is_asking and going:
        return f"No review{about} waits for your decision. {going[0]}."
    return f"There is no open review{about}."
