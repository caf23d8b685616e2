"""Best of several: the results of one task as every door shows them, beside each other or one after the other."""

import msgspec
from msgspec import Struct

from bullpen.errors import NothingToPick, UnknownTurn
from bullpen.file_changes import ChangeRecord
from bullpen.markers.grammar import read_markers
from bullpen.markers.stripping import text_for_people
from bullpen.routing.progress import Progress
from bullpen.routing.rounds import Candidate, Round, Rounds, round_of
from bullpen.store.base import Store, Turn
from bullpen.text.names import listed
from bullpen.view.changes import change_summary
from bullpen.view.checks import CheckLine, check_shown, checks_of_turns

STATES = {
    "waiting": "is still working",
    "done": "not picked",
    "failed": "has no result",
    "picked": "picked",
    "merged": "picked, and merged",
    "apart": "picked, and left in its worktree",
    "gone": "dropped",
}


class Result(Struct, frozen=True, kw_only=True):
    """What one of several did."""

    turn: str
    member: str
    state: str
    about: str
    """What became of it, in a few words."""
    letter: str = ""
    """The neutral name under which a judge was shown it."""
    reply: str = ""
    """What it said; of a turn without a reply, why there is none."""
    summary: str = ""
    """How much it changed: "3 files, +24 −7"."""
    records: tuple[int, ...] = ()
    """The numbers of the records of what it changed."""
    checks: tuple[CheckLine, ...] = ()
    """What checks said about it: of each check, the last run."""
    can_be_picked: bool = False
    can_be_dropped: bool = False


class Results(Struct, frozen=True, kw_only=True):
    """The results of one task."""

    round: str
    """The first turn of those who do it."""
    message_id: str
    """The message with the task."""
    task: str
    text: str
    """Where it stands, in a sentence."""
    judge: str = ""
    results: tuple[Result, ...]

    @property
    def can_be_decided(self) -> bool:
        """Whether a person may pick or drop something now."""
        return any(one.can_be_picked or one.can_be_dropped for one in self.results)


def results_of(store: Store, conversation_id: str, turn_id: str = "") -> Results:
    """Return the results of the task that a turn belongs to; without one, of the last task. Raises NothingToPick."""
    rounds = msgspec.convert(store.conversation(conversation_id).progress, Progress).rounds
    key, one = _found(rounds, turn_id, store, conversation_id)
    task = store.message(conversation_id, one.message_id).message.content
    return Results(
        round=key,
        message_id=one.message_id,
        task=text_for_people(task),
        text=_sentence(one),
        judge=one.judge,
        results=tuple(_result(store, conversation_id, one, candidate) for candidate in one.candidates),
    )


def result_changes(store: Store, conversation_id: str, result: Result) -> list[ChangeRecord]:
    """Return what a result changed, with its lines."""
    found = (store.change(conversation_id, number) for number in result.records)
    return [record for record in found if record is not None]


def _found(rounds: Rounds, turn_id: str, store: Store, conversation_id: str) -> tuple[str, Round]:
    found = round_of(rounds, turn_id) if turn_id else next(reversed([*rounds.items()]), None)
    if found is None:
        if turn_id and _was_one_of_several(store, conversation_id, turn_id):
            raise NothingToPick(
                f"The results of that task were merged or dropped. /diff {turn_id} shows what turn {turn_id} changed."
            )
        what = f"Turn {turn_id} is not one of several" if turn_id else "Nothing is to be compared"
        raise NothingToPick(f"{what}. Let several do the same task with [NEXT: a | b].")
    return found


def _was_one_of_several(store: Store, conversation_id: str, turn_id: str) -> bool:
    """Return whether a turn was one of several whose results are all gone."""
    try:
        asked_by = store.turn(conversation_id, turn_id).message_id
    except UnknownTurn:
        return False
    return read_markers(store.message(conversation_id, asked_by).message.content).best_of is not None


def _sentence(one: Round) -> str:
    match one.state:
        case "working":
            return f"Still working: {listed(candidate.member for candidate in one.in_state('waiting'))}."
        case "judging":
            return f"{one.judge} picks (turn {one.judge_turn})."
        case "asking":
            return " ".join(filter(None, [one.why_asked, "Nothing is merged yet: pick one, or drop all."]))
        case "decided":
            picked = one.in_state("picked", "merged", "apart")
            names = listed(candidate.member for candidate in picked)
            return f"{one.picked_by} picked the result of {names}." if picked else "No result was picked."


def _result(store: Store, conversation_id: str, one: Round, candidate: Candidate) -> Result:
    turn = store.turn(conversation_id, candidate.turn)
    records = store.changes(conversation_id, turn_ids=[candidate.turn], patches=False)
    changed = [record for record in records if record.kind == "turn" and change_summary(record.changes)]
    checks = checks_of_turns(store, conversation_id, [candidate.turn])
    is_open = one.state in ("asking", "decided")
    return Result(
        turn=candidate.turn,
        member=candidate.member,
        state=candidate.state,
        about="" if candidate.state == "done" and one.state != "decided" else STATES[candidate.state],
        letter=one.letter_of(candidate.turn),
        reply=_said(store, conversation_id, turn),
        summary=", ".join(change_summary(record.changes) for record in changed),
        records=tuple(record.number for record in changed),
        checks=tuple(map(check_shown, checks.get(candidate.turn, ()))),
        can_be_picked=is_open and candidate.state in ("done", "apart"),
        can_be_dropped=is_open and candidate.state in ("done", "failed", "apart"),
    )


def _said(store: Store, conversation_id: str, turn: Turn) -> str:
    if turn.reply_id is not None:
        return text_for_people(store.message(conversation_id, turn.reply_id).message.content)
    return turn.failure.explanation if turn.failure is not None else ""
