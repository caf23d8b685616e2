"""Rounds: several members do the same task apart from each other, and one result is picked. Plain data."""

from collections.abc import Collection, Iterator, Mapping
from typing import Literal

from msgspec import Struct
from msgspec.structs import replace

CandidateState = Literal["waiting", "done", "failed", "picked", "merged", "apart", "gone"]
"""Its turn waits or runs; has a reply; has none. It is picked, and is to be merged; is merged; stays in its worktree
after a conflict. Or it was dropped, and its worktree is removed."""
RoundState = Literal["working", "judging", "asking", "decided"]
LETTERS = "ABCDEFGHIJKLMNOPQRSTUVWXYZ"
MOST_CANDIDATES = 10


class Candidate(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One of those who do the task."""

    turn: str
    """Its turn; if that was retried, the last one."""
    member: str
    place: str
    """Its first turn: what its worktree is called after, so that a retry continues there."""
    tries: tuple[str, ...] = ()
    """Its turns before that, which had no reply."""
    state: CandidateState = "waiting"


class Round(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One task, and those who do it."""

    message_id: str
    """The message with the task."""
    candidates: tuple[Candidate, ...]
    judge: str = ""
    """The member that picks; empty: a person does."""
    judge_asked_by: str = ""
    """If a person must allow the judge's turn, the agent that named the judge."""
    judge_turn: str = ""
    order: tuple[str, ...] = ()
    """The turns of those that the judge is shown, in the order of their neutral names: the first one is A."""
    state: RoundState = "working"
    why_asked: str = ""
    """Why a person is asked although there is a judge, in a sentence."""
    is_asked: bool = False
    """Whether a person is asked already."""
    picked_by: str = ""
    is_told: bool = False
    """Whether the conversation says what was picked."""

    def with_candidate(self, turn: str, state: CandidateState) -> "Round":
        """Return the round with one candidate in another state."""
        changed = (replace(one, state=state) if one.turn == turn else one for one in self.candidates)
        return replace(self, candidates=tuple(changed))

    def in_state(self, *states: CandidateState) -> tuple[Candidate, ...]:
        """Return the candidates that are in one of these states."""
        return tuple(one for one in self.candidates if one.state in states)

    def candidate(self, turn: str) -> Candidate | None:
        """Return the candidate whose turn this is."""
        return next((one for one in self.candidates if one.turn == turn), None)

    def letter_of(self, turn: str) -> str:
        """Return the neutral name under which a judge is shown a candidate; nothing if it is not."""
        return LETTERS[self.order.index(turn)] if turn in self.order else ""

    @property
    def to_judge(self) -> tuple[str, ...]:
        """The turns of those that a judge can pick, in the order of their neutral names."""
        done = [candidate.turn for candidate in self.in_state("done")]
        return tuple(turn for turn in self.order if turn in done)

    def called(self, letter: str) -> Candidate | None:
        """Return the candidate with a neutral name."""
        turns = [turn for turn in self.order if self.letter_of(turn) == letter.strip().strip("\"'*`.").upper()]
        return self.candidate(turns[0]) if turns else None


Rounds = Mapping[str, Round]
"""All rounds that are not over, by the first turn of each."""


def round_of(rounds: Rounds, turn: str) -> tuple[str, Round] | None:
    """Return the round in which a turn is a candidate's or the judge's."""
    for key, one in rounds.items():
        if turn == one.judge_turn or one.candidate(turn) is not None:
            return key, one
    return None


def candidate_of(rounds: Rounds, turn: str) -> Candidate | None:
    """Return the candidate whose turn this is."""
    found = (one.candidate(turn) for one in rounds.values())
    return next((candidate for candidate in found if candidate is not None), None)


def is_judges(rounds: Rounds, turn: str) -> bool:
    """Return whether a judge picks in this turn."""
    return any(turn == one.judge_turn for one in rounds.values())


def turns_apart(rounds: Rounds) -> frozenset[str]:
    """Return the turns that edit no shared folder, although their members may in others."""
    return frozenset(turn for one in rounds.values() for turn in (one.judge_turn, *(c.turn for c in one.candidates)))


def hidden_from(rounds: Rounds, member: str) -> frozenset[str]:
    """Return the turns of which a member may see nothing yet: those of its rivals, or that it has to judge."""
    return frozenset(_hidden_from(rounds, member))


def _hidden_from(rounds: Rounds, member: str) -> Iterator[str]:
    for one in rounds.values():
        members: Collection[str] = {candidate.member for candidate in one.candidates}
        if one.state != "decided" and member in (*members, one.judge):
            rivals = (candidate for candidate in one.candidates if candidate.member != member)
            yield from (turn for rival in rivals for turn in (rival.turn, *rival.tries))
