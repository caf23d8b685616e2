"""What agents wrote down that they asked, heard and ran, against the stored chain of questions and answers."""

from collections import Counter, defaultdict
from collections.abc import Iterator
from typing import Any

from proofs.torture.asking_team import ALLOWED, APPROVED, AskingTeam

from bullpen.approvals import ApprovalRecord
from bullpen.store.base import Store

WITHOUT_A_YES, TWICE, LOST = "ran without a recorded yes", "was answered twice", "was lost"
Number = tuple[str, int]
"""A turn, and which of its questions, as the agent counts them."""


class Chain:
    """The questions and answers of one conversation as they are stored."""

    def __init__(self, store: Store, conversation_id: str) -> None:
        self.records = store.approvals(conversation_id)
        self.states = {turn.id: turn.state for turn in store.turns(conversation_id)}
        self.questions: dict[tuple[str, str], ApprovalRecord] = {}
        self.answers: dict[tuple[str, str], ApprovalRecord] = {}
        self.keys: dict[Number, tuple[str, str]] = {}
        for record in self.records:
            key = (record.turn_id, record.question)
            if record.asked is not None:
                self.questions[key] = record
                self.keys[record.turn_id, int(record.asked.why)] = key
            else:
                self.answers[key] = record

    def answer_to(self, number: Number) -> ApprovalRecord | None:
        """Return the stored answer to a question of an agent."""
        return self.answers.get(self.keys.get(number, ("", "")))

    def asked(self, record: ApprovalRecord) -> Any:
        """Return what an answer is the answer to."""
        return self.questions[record.turn_id, record.question].asked


def wrong(team: AskingTeam, store: Store, counts: Counter[str]) -> Iterator[str]:
    """Yield every broken promise about all conversations of a team."""
    chains = {about.id: Chain(store, about.id) for about in store.conversations()}
    said: dict[str, list[list[Any]]] = defaultdict(list)
    for kind, *what in team.noted(team.people_log):
        if kind == "lost":
            yield f"A question {LOST}: {what[0]}"
        elif kind == "told":
            counts[f"told: {what[0].partition(' ')[0]}"] += 1
        else:
            said[what[0]].append([kind, *what[1:]])
    written: dict[str, list[list[Any]]] = defaultdict(list)
    for conversation_id, *what in team.noted(team.agents_log):
        written[conversation_id].append(what)
    always = {
        (record.member, chain.asked(record).command)
        for chain in chains.values()
        for record in chain.answers.values()
        if record.by and record.scope == "team"
    }
    for conversation_id, chain in chains.items():
        where = f"{conversation_id}: "
        yield from (where + text for text in _of_agents(chain, written[conversation_id], counts))
        yield from (where + text for text in _of_people(chain, said[conversation_id], counts))
        yield from (where + text for text in _without_people(chain, always, counts))
    yield from (finding.text for finding in store.fsck())


def _of_agents(chain: Chain, written: list[list[Any]], counts: Counter[str]) -> Iterator[str]:
    heard: Counter[Number] = Counter()
    ran: Counter[Number] = Counter()
    taken_back = {(turn, number) for turn, kind, number, _ in written if kind == "taken back"}
    for turn, kind, number, what in written:
        key, stored = (turn, number), chain.answer_to((turn, number))
        answer = stored.answer if stored else None
        match kind:
            case "asked" if chain.states.get(turn) == "done" and key not in chain.keys and key not in taken_back:
                yield f"{what!r} (question {number} of turn {turn}) {LOST}: it is not stored"
            case "heard":
                heard[key] += 1
                if heard[key] > 1 or number == 0:
                    yield f"question {number} of turn {turn} {TWICE}"
                if answer is not None and what not in (answer.verdict, "cancelled"):
                    yield f"question {number} of turn {turn} heard {what}, and {answer.verdict} is stored"
            case "ran":
                ran[key] += 1
                counts["commands run"] += 1
                is_agreed = (
                    stored is not None
                    and answer is not None
                    and answer.verdict == "yes"
                    and what == (answer.command or chain.asked(stored).command)
                )
                if not is_agreed or ran[key] > 1:
                    yield f"{what!r} (question {number} of turn {turn}) {WITHOUT_A_YES}"
    for key, record in chain.questions.items():
        counts["questions"] += 1
        if key not in chain.answers:
            state = chain.states[record.turn_id]
            counts["left open by a kill"] += 1
            if state != "interrupted":
                yield f"question {key} {LOST}: it has no answer, and its turn is {state}"


def _of_people(chain: Chain, said: list[list[Any]], counts: Counter[str]) -> Iterator[str]:
    """Yield what people did not say, and what they said and was not kept."""
    stored = {
        key: [*key, record.by, record.answer.verdict, record.answer.command, record.scope]
        for key, record in chain.answers.items()
        if record.by and record.answer
    }
    says = [_as_stored(what) for kind, *what in said if kind == "says"]
    accepted = [_as_stored(what) for kind, *what in said if kind == "accepted"]
    for key, answer in stored.items():
        counts[f"answered by people: {answer[3]}"] += 1
        if answer not in says:
            yield f"question {key} has an answer that nobody gave: {answer}"
    for answer in accepted:
        if stored.get((answer[0], answer[1])) != answer:
            yield f"the answer {answer} {LOST}: it was accepted, and is not stored"
    for key, count in Counter((answer[0], answer[1]) for answer in accepted).items():
        if count > 1:
            yield f"question {key} {TWICE}"


def _as_stored(said: list[Any]) -> list[Any]:
    """Return an answer as it should be stored: only a yes to what was asked for holds for longer."""
    *first, verdict, command, scope = said
    return [*first, verdict, command, scope if verdict == "yes" and not command else "once"]


def _without_people(chain: Chain, always: set[tuple[str, str]], counts: Counter[str]) -> Iterator[str]:
    """Yield every yes that no person gave, and no rule and no earlier answer gives."""
    for record in chain.records:
        if record.answer is None or record.by:
            continue
        counts["answered without people: " + (record.because.partition(":")[0])] += 1
        if record.answer.verdict != "yes":
            continue
        command = chain.asked(record).command
        held = {
            before.scope
            for before in chain.records[: record.number - 1]
            if before.by and before.member == record.member
            if before.answer and before.answer.verdict == "yes" and not before.answer.command
            if before.scope == "conversation" or (before.scope == "turn" and before.turn_id == record.turn_id)
            if chain.asked(before).command == command
        }
        match record.because:
            case because if because == f"allow: {ALLOWED}":
                is_right = command.startswith(ALLOWED)
            case because if because == f"approve: {APPROVED}":
                is_right = command == APPROVED
            case because if because.endswith(" allowed it for the team") or because.startswith("always"):
                is_right = (record.member, command) in always
            case _:
                is_right = bool(held)
        if not is_right:
            yield f"{command!r} in turn {record.turn_id} has a yes that nobody gave: {record.because}"
