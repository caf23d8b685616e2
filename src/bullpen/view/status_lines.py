"""The state of a conversation in words: one line of status, the queue, and who is in the team."""

from collections.abc import Collection, Iterable, Iterator, Mapping
from types import MappingProxyType

from bullpen.agents.registry import spec_for
from bullpen.clock import now
from bullpen.conversation.conversation import Conversation
from bullpen.team.left_out import left_out_words
from bullpen.text.numbers import elapsed, used
from bullpen.view.activity import ACTIVITIES, FAILED, WAITS, WORKING
from bullpen.view.choices import Decision
from bullpen.view.state import ConversationView, MemberView, QueuedTurn, RunningCheck, Working, conversation_view

NOTHING_KEPT = "Nothing was said, so nothing is kept."
"""What a person is told who leaves a conversation without a message."""


def status_line(view: ConversationView) -> str:
    """Return who is working and who is waiting, on one line; nothing if there is nothing to say."""
    return " · ".join(_status(view))


def why_last_waits(view: ConversationView) -> str:
    """Return what the turn that came last waits for in the end, such as "max waits for kai: both may edit …"."""
    waiting = {turn.turn: turn for turn in view.queue}
    one = max(view.queue, key=lambda turn: (len(turn.turn), turn.turn), default=None)
    while one is not None and one.after in waiting:
        # What it waits for waits itself, and is not met again.
        one = waiting.pop(one.after)
    # Short enough for a small screen.
    return f"{one.member} {one.why.replace(f' (turn {one.after})', '', 1)}" if one is not None and one.why else ""


def queue_lines(view: ConversationView) -> list[str]:
    """Return who is working, who is waiting, and what needs a decision, each on a line of its own."""
    lines = [f"{sign_of(one)} turn {one.turn}  {one.member}: {one.words}, {seconds_of(one)}" for one in view.working]
    lines += [
        f"{WORKING.sign} turn {one.turn}  {one.member}: the check {one.name} runs, {seconds_of(one)}"
        for one in view.checking
    ]
    asked = {decision.turn for decision in view.decisions if decision.kind == "allow"}
    for turn in view.queue:
        state = "/allow or /dismiss?" if turn.turn in asked else "on hold" if turn.held else turn.why or "waiting"
        lines.append(f"turn {turn.turn}  {turn.member}: {state}")
    lines += [member.review for member in view.members if member.review]
    lines += [f"{FAILED.sign} turn {ended.turn}  {ended.member}: {_answers(view)}?" for ended in view.undecided]
    lines += [f"turn {one.turn}  {one.member}: cancelled; /retry {one.turn} runs it again" for one in view.cancelled]
    lines += [f"{one.text} {_typed(one)}?" for one in view.decisions if one.kind in ("programs", "left")]
    lines += [
        f"turn {one.turn}  {one.member}: /take, /keep, /resolve or /apart?"
        for one in view.decisions
        if one.kind == "conflict"
    ]
    lines += [
        f"turn {one.turn}  {_names(one)}: /pick NAME or /discard all?" for one in view.decisions if one.kind == "pick"
    ]
    lines += [f"{one.text} /again or /end-review?" for one in view.decisions if one.kind == "review"]
    return lines or ["No turn is running or waiting."]


def cancelled_words(view: ConversationView, turns: Iterable[str]) -> str:
    """Return what a person is told who has cancelled these turns: whose they were, and how one is run again."""
    ended = [one for one in view.cancelled if one.turn in set(turns)]
    if not ended:
        return "Cancelled."
    again = f"/retry {ended[-1].turn} runs {'it' if len(ended) == 1 else f'that of {ended[-1].member}'} again."
    return f"Cancelled: {', '.join(one.member for one in ended)}. {again}"


def left_open_lines(view: ConversationView) -> Iterator[str]:
    """Yield what a person is told who leaves: what waits for their decision, and who is in the queue."""
    for one in view.decisions:
        if one.kind == "question":
            yield f"Waiting for your answer: {one.text} In chat: {_typed(one)}."
    if view.undecided:
        names = ", ".join(f"turn {ended.turn} of {ended.member}" for ended in view.undecided)
        yield f"Waiting for your decision: {names}. In chat: {_answers(view)}."
    if view.cancelled:
        yield f"Cancelled: {', '.join(f'turn {one.turn} of {one.member}' for one in view.cancelled)}. In chat: /retry."
    if asked := [f"turn {one.turn} of {one.member}" for one in view.decisions if one.kind == "allow"]:
        yield f"Waiting for your yes: {', '.join(asked)}. In chat: /allow or /dismiss."
    for one in view.decisions:
        if one.kind in ("programs", "left"):
            yield f"Waiting for your decision: {one.text} In chat: {_typed(one)}."
    if conflicts := [f"turn {one.turn} of {one.member}" for one in view.decisions if one.kind == "conflict"]:
        yield f"Not merged: {', '.join(conflicts)}. In chat: /take, /keep, /resolve NAME or /apart."
    if unpicked := [_names(one) for one in view.decisions if one.kind == "pick"]:
        yield f"Nothing is picked yet: {'; '.join(unpicked)}. In chat: /compare, /pick NAME or /discard all."
    for one in view.decisions:
        if one.kind == "review":
            yield f"Not approved: {one.text} In chat: /again or /end-review."
        if one.kind == "budget":
            yield f"{one.text} In chat: /raise once, /raise always or /drop."
    if view.queue:
        yield f"In the queue: {', '.join(turn.member for turn in view.queue)}."


def _answers(view: ConversationView) -> str:
    """Return what can be typed about a turn that failed: nobody can be handed it in a team with one agent."""
    has_others = sum(bool(member.agent) for member in view.members) > 1
    return "/retry, /skip or /hand NAME" if has_others else "/retry or /skip"


def who_lines(conversation: Conversation) -> list[str]:
    """Return who is in the team of an open conversation."""
    team, root = conversation.team, conversation.root
    here = [member for member in team.agents if not member.pool]
    left_out = {
        one.name: left_out_words(spec_for(one.agent, one.command), one.permissions, root / one.cwd) for one in here
    }
    return team_lines(conversation_view(conversation), team.first_to_answer, left_out)


def team_lines(
    view: ConversationView, leads: Collection[str] = (), left_out: Mapping[str, str] = MappingProxyType({})
) -> list[str]:
    """Return who is in the team, and below each agent what it remembers, does not get, and has used of its budget."""
    lines: list[str] = []
    for member in view.members:
        lines += _member_lines(member, is_lead=member.name in leads)
        if words := left_out.get(member.name):
            lines.append(f"  does not get the project's {words}: its permissions are not full")
        lines += [f"  {one.text}" for one in view.budgets if one.member == member.name]
    return [*lines, *(one.text for one in view.budgets if not one.member)]


def seconds_of(working: Working | RunningCheck) -> str:
    """Return for how long a turn or a check has been running."""
    return elapsed(now() - working.since / 1000)


def _status(view: ConversationView) -> Iterator[str]:
    for one in view.working:
        yield f"{sign_of(one)} {one.member}: {one.words}, {seconds_of(one)}"
    for check in view.checking:
        yield f"{WORKING.sign} {check.name} runs, {seconds_of(check)}"
    if waiting := [_waiting(view, turn) for turn in view.queue if not turn.held]:
        yield f"waiting: {', '.join(waiting)}"
    asked = {one.turn: one.member for one in view.decisions if one.kind in ("allow", "conflict", "programs", "left")}
    if held := [turn.member for turn in view.queue if turn.held and turn.turn not in asked]:
        yield f"on hold: {', '.join(held)}"
    undecided = {ended.turn: ended.member for ended in view.undecided}
    asked |= {one.turn: _names(one) for one in view.decisions if one.kind == "pick"}
    if undecided:
        yield f"{FAILED.sign} {FAILED.word}: {_turns(undecided)}"
    if asked:
        yield f"{WAITS.sign} {WAITS.word}: {_turns(asked)}"
    yield from (member.review for member in view.members if member.review)
    if spent := [one.member or "the conversation" for one in view.decisions if one.kind == "budget"]:
        yield f"budget used up: {', '.join(spent)}"
    if view.paused is not None and not asked:
        yield f"{WAITS.sign} {WAITS.word}"


def sign_of(working: Working) -> str:
    """Return the sign of what a turn does."""
    return ACTIVITIES[working.activity].sign


def _turns(members: Mapping[str, str]) -> str:
    return ", ".join(f"{member} (turn {turn})" for turn, member in members.items())


def _typed(decision: Decision) -> str:
    """Return what can be typed about a decision."""
    return " or ".join(choice.typed for choice in decision.choices)


def _names(decision: Decision) -> str:
    """Return whose results are to be picked from."""
    return ", ".join(decision.others) or "no result"


def _waiting(view: ConversationView, turn: QueuedTurn) -> str:
    """Return who waits, and for whom."""
    working = {one.turn: one.member for one in view.working}
    other = working.get(turn.after, turn.member)
    return turn.member if other == turn.member else f"{turn.member} (for {other})"


def _member_lines(member: MemberView, *, is_lead: bool) -> Iterator[str]:
    model = f", model {member.model}" if member.model else ""
    what = (member.agent or "a person") + model + (", full permissions" if member.has_full_permissions else "")
    role = f", {member.role}" if member.role else ""
    spent = used(member.spent.tokens, member.spent.cost_usd, is_estimate=member.spent.is_estimate)
    yield f"{member.name}: {what}{role}{' (leads)' if is_lead else ''}{f' · {spent}' if spent else ''}"
    if not spent and member.spent.turns > member.spent.failures:
        yield "  reports no figures: what its turns have used is not known"
    if member.memory is not None:
        yield f"  {member.memory.sentence}"
    if member.review:
        yield f"  {member.review}"
