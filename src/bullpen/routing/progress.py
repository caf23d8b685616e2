"""Progress: what a conversation remembers between messages, and the limits that end loops. Plain data."""

import unicodedata
from collections.abc import Iterable
from hashlib import blake2b
from heapq import nsmallest

from msgspec import Struct
from msgspec.structs import replace

from bullpen.markers.stripping import strip_all_markers
from bullpen.memory import MemberMemory, Memory, SessionUse, made_to_forget
from bullpen.routing.asks import OpenAsk
from bullpen.routing.blind import BlindRound
from bullpen.routing.missed_hand_overs import MissedHandOver
from bullpen.routing.rests import QuotaUse, Rest
from bullpen.routing.reviews import Review
from bullpen.routing.rounds import Round, is_judges, turns_apart
from bullpen.routing.summaries import AskedSummary, Summary
from bullpen.team.team import Limits
from bullpen.text.numbers import counted, duration, money, tokens
from bullpen.text.patterns import pattern
from bullpen.turn_events import Failed, Usage

SKETCH_SIZE = 32
ALIKE = 29
"""How many hashes texts must share to count as alike: nine out of ten."""
LONGEST_TEXT = 64 * 1024
"""Characters that are compared."""
RUN = 3
# Sketches may be stored as numbers in SQLite or JSON, which hold 63 and 53 bits.
HASH_BYTES = 6

# Chinese, Japanese, Thai and related scripts are written without spaces, so each character counts as a word.
_NO_SPACES = r"\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u2e80-\ua4cf\uf900-\ufaff\U00020000-\U0003ffff"
# Words have a maximum length, so that a text without any spaces has words, too.
_WORD = pattern(rf"(?=\w)[{_NO_SPACES}]|[^\W{_NO_SPACES}]{{1,16}}")
_NUMBER = pattern(r"\d+(?:[.,:]\d+)*")


def sketch(text: str) -> tuple[int, ...]:
    """Return the sketch of a text; a short text is hashed as a whole."""
    words = _words(text)
    runs = {" ".join(words[start : start + RUN]) for start in range(len(words) - RUN + 1)}
    if len(runs) < SKETCH_SIZE:
        return (_hashed(" ".join(words)),)
    return tuple(nsmallest(SKETCH_SIZE, map(_hashed, runs)))


def alike(a: tuple[int, ...], b: tuple[int, ...]) -> bool:
    """Return whether two sketches are of nearly the same text; short texts must have the same words."""
    if min(len(a), len(b)) < SKETCH_SIZE:
        return a == b
    return len(set(a) & set(b)) >= ALIKE


def _words(text: str) -> list[str]:
    """Return the words to compare. Numbers are equal: a loop with a counter is still a loop."""
    without_markers = strip_all_markers(text[:LONGEST_TEXT])
    plain = _NUMBER.sub("0", unicodedata.normalize("NFKC", without_markers).casefold())
    return _WORD.findall(plain) or plain.split()


def _hashed(words: str) -> int:
    # Python's own hash() differs from one process to the next.
    return int.from_bytes(blake2b(words.encode(errors="replace"), digest_size=HASH_BYTES).digest())


MOST = 10**15
"""The most tokens or dollars that JSON can hold exactly."""


def added(*costs: float | None) -> float | None:
    """Return what several costs are together; None if none of them is known."""
    known = [cost for cost in costs if cost is not None]
    return min(sum(known), float(MOST)) if known else None


class MemberUsage(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What one member's turns have used, or several members' together."""

    turns: int = 0
    failures: int = 0
    tokens: int = 0
    cost_usd: float | None = None
    """None if no CLI has reported it, and no model is known whose tokens cost it."""
    is_estimate: bool = False
    """Whether some of the money is what tokens cost by a list of prices."""
    last_failure: str = ""
    seconds: float = 0.0
    """How long they have worked, without the time in which people were asked."""
    unstarted: int = 0
    """How many of the turns had a program that could not be started, since it is not installed."""

    def __add__(self, other: "MemberUsage") -> "MemberUsage":
        return MemberUsage(
            turns=self.turns + other.turns,
            failures=self.failures + other.failures,
            tokens=min(self.tokens + other.tokens, MOST),
            cost_usd=added(self.cost_usd, other.cost_usd),
            is_estimate=self.is_estimate or other.is_estimate,
            last_failure=other.last_failure or self.last_failure,
            seconds=self.seconds + other.seconds,
            unstarted=self.unstarted + other.unstarted,
        )


def usage_of_turn(
    usage: Usage | None, failure: Failed | None = None, *, interrupted: bool = False, seconds: float = 0.0
) -> MemberUsage:
    """Return what one turn has used. Agents may report anything, so negative numbers count as zero."""
    failed = interrupted or (failure is not None and failure.kind != "cancelled")
    cost = None if usage is None or usage.cost_usd is None else max(0.0, usage.cost_usd)
    return MemberUsage(
        turns=1,
        failures=int(failed),
        tokens=0 if usage is None else max(0, usage.input_tokens) + max(0, usage.output_tokens),
        cost_usd=cost,
        is_estimate=usage is not None and usage.is_estimate,
        last_failure=failure.message if failed and failure is not None else "",
        seconds=max(0.0, seconds),
        unstarted=int(failure is not None and failure.kind == "not_installed"),
    )


class BudgetNote(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What people have decided about a budget, and what they were told of it."""

    cap: float | None = None
    """What it was raised to; None: it is as the team file says."""
    is_lifted: bool = False
    """Whether it holds no more in this conversation."""
    told_of: float | None = None
    """The cap of which people were told that most of it is used."""


class MergeConflict(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What an agent did in its own workspace, and cannot be brought into the shared folder until a person decides."""

    member: str
    files: tuple[str, ...]
    """The files that were changed in both, in ways that cannot both be kept; the first of them, if they are many."""
    more: int = 0
    """How many more there are."""


class ProgramChange(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Files that make programs run, and that an agent has changed; a person decides before another agent begins."""

    member: str
    files: tuple[str, ...] = ()
    beside: tuple[str, ...] = ()
    """Those of which nothing is kept, so that they cannot be put back."""


class FilesLeft(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Files that an undo left, since a person perhaps changed them; a person decides."""

    member: str
    files: tuple[str, ...]


class Progress(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What the store keeps besides the messages and turns, so that a restart changes nothing."""

    turns_made: int = 0
    """The number of turns so far; the next turn gets the next number."""
    message_number: int = 0
    """The highest N of all message ids msg-N; the next message gets the next one."""
    person: str | None = None
    """The person who spoke last, and to whom the conversation returns."""
    handed_over: dict[str, str] = {}
    """For each person, the agent that last handed over to them."""
    misses: dict[str, str] = {}
    """For each agent, the note in its next prompt about a hand-over that did not work."""
    held: tuple[str, ...] = ()
    """Waiting turns that are held until a person releases them."""
    unallowed: dict[str, str] = {}
    """Waiting turns that begin only if a person allows them, and for each the agent that asked for it."""
    undecided: tuple[str, ...] = ()
    """Turns that ended without a reply, until a person decides what to do about them."""
    cancelled: tuple[str, ...] = ()
    """Those of them that a person cancelled, who is not asked about them; perhaps some that are decided by now."""
    conflicts: dict[str, MergeConflict] = {}
    """For each turn whose work conflicts with what others did meanwhile: what a person must decide about."""
    programs: dict[str, ProgramChange] = {}
    """For each turn that changed files which make programs run: what a person must decide about."""
    files_left: dict[str, FilesLeft] = {}
    """For each turn that was taken back but for what a person perhaps changed: whether that is taken back, too."""
    asked_elsewhere: str = ""
    """The conversation in which people must decide about such files before this one continues; empty: none."""
    returns: dict[str, dict[str, int]] = {}
    """For each message that returned checks, how many times in a row each of them was by then."""
    rounds: dict[str, Round] = {}
    """Best of several: for the first turn of each, who does the task, and what was picked."""
    blind: dict[str, BlindRound] = {}
    """For each message whose answers are judged without names: who answers it, and who judges."""
    reviews: dict[str, Review] = {}
    """For each agent whose work is reviewed, its last review."""
    asks: dict[str, OpenAsk] = {}
    """For the last turn of each agent that offered answers with [ASK: …]: until a person or the agent says more."""
    summaries: tuple[Summary, ...] = ()
    """What was summed up, oldest first, dropped ones included."""
    summing: dict[str, AskedSummary] = {}
    """For each turn in which a summary is asked for, until it has a reply or is given up: which messages it covers."""
    summed_to: int = 0
    """The last message for which a summary was asked. By itself, none is asked for again for the same messages."""
    rests: dict[str, Rest] = {}
    """For each program that cannot be used: why, and until when."""
    quotas: dict[str, QuotaUse] = {}
    """For each program of a member with stand_in_at: how much of its quota is used."""
    stand_ins: dict[str, str] = {}
    """For each running turn that a stand-in has: which."""
    standing: dict[str, str] = {}
    """For each member whose last turn a stand-in began: which."""
    tried: dict[str, tuple[str, ...]] = {}
    """For each waiting or running turn that others have failed to take: who, by the names in the team file."""
    used: dict[str, MemberUsage] = {}
    """What each member's turns have used."""
    budgets: dict[str, BudgetNote] = {}
    """For each budget that people were told of or have raised, by its key: what they know and decided."""
    spent: tuple[str, ...] = ()
    """Whose budgets are used up so that people are asked: members, and "" for the conversation's."""
    forgotten: dict[str, str] = {}
    """Agents whose next turn begins a new session, and for each the person who wants that."""
    forgetting: dict[str, str] = {}
    """Agents whose last turn began a new session because of that, and for each who has wanted it again since."""
    borrowed: dict[str, MemberMemory] = {}
    """For each agent, a session of another conversation, or of its CLI's own, of which it continues a copy."""
    forked: dict[str, str] = {}
    """For each folder on a worker with whose files the conversation was forked, the worktree there that has them."""
    missed: MissedHandOver | None = None
    """The last missed hand-over, until a person speaks, who was meant is asked, or the sender says something else."""

    # What the limits count, since a person last spoke or continued the conversation.
    since: int = 0
    turns: int = 0
    tokens: int = 0
    cost_usd: float = 0.0
    pair: tuple[str, ...] = ()
    pair_turns: int = 0
    last_replies: dict[str, tuple[int, ...]] = {}
    """For each agent, the sketch of its last reply."""
    same_replies: dict[str, int] = {}
    """For each agent, how many times in a row it said nearly the same."""

    @property
    def blocked(self) -> tuple[str, ...]:
        """Waiting turns that do not begin until a person says so."""
        return (*self.held, *self.unallowed)

    @property
    def unwanted(self) -> tuple[str, ...]:
        """Turns that ended without a reply, as nobody wanted: people are asked about these."""
        return tuple(turn for turn in self.undecided if turn not in self.cancelled)

    @property
    def apart(self) -> frozenset[str]:
        """Turns that edit no shared folder and leave nothing in a member's session: of several, judges', summaries."""
        return turns_apart(self.rounds) | self.summing.keys()

    def only_reads(self, turn_id: str) -> bool:
        """Return whether a turn only judges or sums up, so that its agent may change nothing."""
        return turn_id in self.summing or is_judges(self.rounds, turn_id)


def with_own_session(progress: Progress, agent: str, memory: Memory | None) -> Progress:
    """Return the progress after an agent's reply: it has a session of its own now.

    A person may have made it forget while it worked: then only its next turn begins a new session.
    """
    person = progress.forgotten.get(agent)
    has_forgotten = person is None or (memory is not None and memory.reason == made_to_forget(person))
    again = progress.forgetting.get(agent, "") if has_forgotten else person
    others = {name: by for name, by in progress.forgotten.items() if name != agent}
    return replace(
        progress,
        forgotten={**others, agent: again} if again else others,
        forgetting={name: by for name, by in progress.forgetting.items() if name != agent},
        borrowed={name: memory for name, memory in progress.borrowed.items() if name != agent},
    )


def with_session(progress: Progress, agent: str, session: SessionUse | None) -> Progress:
    """Return the progress when an agent's turn begins in a session."""
    others = {name: by for name, by in progress.forgetting.items() if name != agent}
    person = progress.forgotten.get(agent)
    is_forgetting = person is not None and session is not None and session.reason == made_to_forget(person)
    return replace(progress, forgetting={**others, agent: ""} if is_forgetting else others)


def without_questions(progress: Progress, turn_ids: Iterable[str]) -> Progress:
    """Return the progress after turns were allowed or dropped: nobody is asked about them any more."""
    gone = frozenset(turn_ids)
    return replace(progress, unallowed={turn: by for turn, by in progress.unallowed.items() if turn not in gone})


def counting_again(progress: Progress, at: int) -> Progress:
    """Return the progress after a person's message: the limits count from zero."""
    return replace(
        progress,
        asked_elsewhere="",
        since=at,
        turns=0,
        tokens=0,
        cost_usd=0.0,
        pair=(),
        pair_turns=0,
        last_replies={},
        same_replies={},
    )


def without_turn(progress: Progress, turn_id: str) -> Progress:
    """Return the progress without what is remembered of a turn while it waits and runs."""
    if turn_id not in progress.stand_ins and turn_id not in progress.tried:
        return progress
    return replace(
        progress,
        stand_ins={turn: by for turn, by in progress.stand_ins.items() if turn != turn_id},
        tried={turn: names for turn, names in progress.tried.items() if turn != turn_id},
    )


def without_asked(progress: Progress, asked: float, at: int) -> Progress:
    """Return the progress after a turn in which people were asked for some seconds: no limit counts those."""
    return replace(progress, since=max(progress.since, min(progress.since + round(1_000 * asked), at)))


def with_usage(progress: Progress, member: str, used: MemberUsage) -> Progress:
    """Return the progress with what a member's turn used, no matter how it ended."""
    return replace(
        progress,
        tokens=min(progress.tokens + used.tokens, MOST),
        cost_usd=min(progress.cost_usd + (used.cost_usd or 0.0), float(MOST)),
        used={**progress.used, member: progress.used.get(member, MemberUsage()) + used},
    )


def with_reply(progress: Progress, agent: str, text: str, hands_over_to: str | None) -> Progress:
    """Return the progress after an agent's reply; `hands_over_to` is the agent that answers it."""
    pair = tuple(sorted((agent, hands_over_to))) if hands_over_to is not None else ()
    pair_turns = progress.pair_turns + 1 if pair and pair == progress.pair else len(pair[:1])
    current = sketch(text)
    previous = progress.last_replies.get(agent)
    same = progress.same_replies.get(agent, 1) + 1 if previous is not None and alike(previous, current) else 1
    return replace(
        progress,
        pair=pair,
        pair_turns=pair_turns,
        last_replies={**progress.last_replies, agent: current},
        same_replies={**progress.same_replies, agent: same},
    )


def cap_reached(progress: Progress, limits: Limits, now: int) -> str | None:
    """Return why no agent may start a turn now, in a sentence, or None."""
    seconds = (now - progress.since) / 1_000
    repeats = [name for name, count in progress.same_replies.items() if count >= limits.identical_replies]
    if progress.turns >= limits.turns_per_message:
        return f"The agents have taken {counted(progress.turns, 'turn')} since you last spoke."
    if progress.pair_turns >= limits.back_and_forth:
        first, second = progress.pair
        return f"{first} and {second} have handed over to each other {progress.pair_turns} times in a row."
    if repeats:
        return f"{repeats[0]} has said nearly the same {progress.same_replies[repeats[0]]} times in a row."
    if limits.minutes is not None and seconds >= 60 * limits.minutes:
        return f"The agents have worked for {duration(seconds)} since you last spoke."
    if limits.tokens is not None and progress.tokens >= limits.tokens:
        return f"The agents have used {tokens(progress.tokens)} since you last spoke."
    if limits.cost_usd is not None and progress.cost_usd >= limits.cost_usd:
        is_estimate = any(used.is_estimate for used in progress.used.values())
        return f"The agents have spent {money(progress.cost_usd, is_estimate=is_estimate)} since you last spoke."
    return None


def room_for_turns(progress: Progress, limits: Limits, uncounted: int = 0) -> int:
    """Return how many more turns may start before a person must speak; `uncounted` have started and are not counted."""
    return max(0, limits.turns_per_message - progress.turns - uncounted)
