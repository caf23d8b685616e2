"""What the commands that change a conversation do; each returns what to tell the person, if there is more to tell."""

from collections.abc import Iterable

from bullpen.approvals import Answer
from bullpen.conversation.conversation import Conversation, decider
from bullpen.errors import BullpenError, NothingRuns, NothingToDecide
from bullpen.text.names import listed, normalized
from bullpen.view.budgets import CONVERSATION
from bullpen.view.choices import ASK
from bullpen.view.command_arguments import (
    REMOVE,
    Leftover,
    Member,
    Names,
    Nothing,
    OneAnswer,
    OneTurn,
    Raise,
    Reviewed,
    Task,
    Text,
    ThatTurn,
    Title,
    Told,
    Turns,
    Undone,
    Which,
)
from bullpen.view.listing import title_of, typed_title
from bullpen.view.state import conversation_view
from bullpen.view.status_lines import cancelled_words


async def add_note(conversation: Conversation, given: Text, person: str | None) -> str:
    """Store a note."""
    await conversation.note(given.text, sender=person)
    return ""


async def ask(conversation: Conversation, given: Names, person: str | None) -> str:
    """Ask members to answer the last message."""
    await conversation.ask(given.names, by=person)
    return ""


async def cancel(conversation: Conversation, given: Which, person: str | None) -> str:
    """End running turns."""
    if given.is_empty:
        return await _cancelled(conversation, (), person)
    running = {running.turn.id: running.turn.member for running in conversation.running.values()}
    members = [conversation.member(name).name for name in given.all_members]
    idle = [name for name in members if name not in running.values()]
    if idle:
        raise NothingRuns(members=idle)
    turns = [turn for turn, member in running.items() if member in members]
    return await _cancelled(conversation, (*given.all_turns, *turns), person)


async def _cancelled(conversation: Conversation, turns: Iterable[str], person: str | None) -> str:
    ended = await conversation.cancel(*turns, by=person)
    return cancelled_words(conversation_view(conversation), [turn.id for turn in ended])


async def say_yes(conversation: Conversation, given: OneAnswer, person: str | None) -> str:
    """Let a running agent do what it asks for, or answer its question."""
    if (turn := _ask(conversation, given)) is not None:
        await conversation.answer_ask(turn, given.text or given.command, by=person)
        return ""
    answer = Answer(verdict="yes", command=given.command, text=given.text)
    await conversation.answer(*_question(conversation, given), answer, scope=given.scope, by=person)
    return ""


async def say_no(conversation: Conversation, given: OneAnswer, person: str | None) -> str:
    """Do not let a running agent do what it asks for."""
    if (turn := _ask(conversation, given)) is not None:
        if given.text:
            await conversation.answer_ask(turn, given.text, by=person)
        else:
            await conversation.dismiss_ask(turn, by=person)
        return ""
    answer = Answer(verdict="no", reason=given.text or "A person said no.")
    await conversation.answer(*_question(conversation, given), answer, by=person)
    return ""


async def say_stop(conversation: Conversation, given: OneAnswer, person: str | None) -> str:
    """Do not let a running agent do what it asks for, and end its turn."""
    answer = Answer(verdict="stop", reason=given.text or "A person said no, and ended the turn.")
    await conversation.answer(*_question(conversation, given), answer, by=person)
    return ""


async def tell(conversation: Conversation, given: Told, person: str | None) -> str:
    """Give words to an agent that is working."""
    name = conversation.agent(given.member).name
    if await conversation.tell(name, given.text, sender=person):
        return f"Told: {name} reads that in this turn, with its next step."
    return f"Queued: {name} cannot be told anything in this turn, and reads that in its next one."


def _ask(conversation: Conversation, given: OneAnswer) -> str | None:
    """Return the turn that offered answers in its reply, if that is what is meant: running agents come first."""
    if given.question == ASK and given.turn in conversation.progress.asks:
        return given.turn
    if given.question is not None:
        return None
    if any(given.turn in (None, turn_id) for turn_id, _ in conversation.approvals.open):
        return None
    asks = conversation.progress.asks
    if given.turn is None and len(asks) > 1:
        raise _several(asks)
    return given.turn if given.turn in asks else next(iter(asks), None) if given.turn is None else None


def _question(conversation: Conversation, given: OneAnswer) -> tuple[str, str]:
    """Return the question that is meant. If several can be, none is: nobody has seen which one we would take."""
    meant = [
        (turn_id, question)
        for turn_id, question in conversation.approvals.open
        if given.turn in (None, turn_id) and given.question in (None, question)
    ]
    if len(meant) > 1:
        raise _several(turn_id for turn_id, _ in meant)
    if meant:
        return meant[0]
    if (
        given.turn is None
        and given.question is not None
        and (conversation.approvals.open or conversation.progress.asks)
    ):
        raise BullpenError("What you saw is not asked any more. Nothing was answered; look at what is asked now.")
    if given.turn is None:
        raise BullpenError("No agent asks anything now.")
    return given.turn, given.question or ""


def _several(turns: Iterable[str]) -> BullpenError:
    asking = listed(dict.fromkeys(f"turn {turn}" for turn in turns))
    return BullpenError(f"Several questions of {asking} wait for you. Nothing was answered; say which one you mean.")


async def continue_turns(conversation: Conversation, _: Nothing, person: str | None) -> str:
    """Continue after a pause."""
    await conversation.continue_turns(by=person)
    return ""


async def continue_review(conversation: Conversation, given: Reviewed, person: str | None) -> str:
    """Let a review continue for one more round."""
    await conversation.reviews.again(given.member, by=person or decider(conversation.team))
    return ""


async def end_review(conversation: Conversation, given: Reviewed, person: str | None) -> str:
    """End a review without an approval."""
    await conversation.reviews.end(given.member, by=person or decider(conversation.team))
    return ""


async def drop(conversation: Conversation, given: Which, person: str | None) -> str:
    """Remove waiting turns."""
    if await conversation.drop(members=given.all_members, turn_ids=given.all_turns, by=person):
        return ""
    members = ", ".join(conversation.member(name).name for name in given.all_members)
    return f"No turn of {members} is waiting." if members else "No turn is waiting."


async def allow(conversation: Conversation, given: Which, person: str | None) -> str:
    """Let turns begin that an agent may not ask for by itself, or keep files that make programs run."""
    programs = _programs(conversation)
    meant = _meant(conversation, given, {**_unallowed(conversation), **programs})
    for turn in meant:
        if turn in programs:
            await conversation.keep_programs(turn, by=person)
    if others := [turn for turn in meant if turn not in programs]:
        await conversation.allow(*others, by=person)
    return ""


async def retry(conversation: Conversation, given: Which, person: str | None) -> str:
    """Rerun turns that ended without a reply."""
    # Each goes before all others, so the last one goes first.
    for turn in reversed(_meant(conversation, given, _undecided(conversation))):
        await conversation.retry(turn, by=person)
    return ""


async def skip(conversation: Conversation, given: Which, person: str | None) -> str:
    """Continue without turns that ended without a reply."""
    for turn in _meant(conversation, given, _undecided(conversation)):
        await conversation.skip(turn, by=person)
    return ""


def _undecided(conversation: Conversation) -> dict[str, str]:
    """Return whose turns ended without a reply and wait for a decision, by turn."""
    return {turn.id: turn.member for turn in conversation.undecided}


def _unallowed(conversation: Conversation) -> dict[str, str]:
    """Return whose turns begin only if a person allows them, by turn."""
    return {turn.id: turn.member for turn in conversation.unallowed}


def _programs(conversation: Conversation) -> dict[str, str]:
    """Return whose turns changed files that make programs run, by turn."""
    return {turn: change.member for turn, change in conversation.progress.programs.items()}


def _left(conversation: Conversation) -> dict[str, str]:
    """Return of whose turns an undo left files that a person perhaps changed, by turn."""
    return {turn: left.member for turn, left in conversation.progress.files_left.items()}


def _meant(conversation: Conversation, given: Which, known: dict[str, str]) -> list[str]:
    """Return the turns that are meant, all of them known; without any, the latest."""
    if given.is_empty and not known:
        raise NothingToDecide(None)
    if given.is_empty:
        return list(known) if given.everything else list(known)[-1:]
    # Who has left the team can still have a turn to decide about.
    names = {normalized(member): member for member in known.values()}
    members = [names.get(normalized(name)) or conversation.member(name).name for name in given.all_members]
    for turn in given.all_turns:
        if turn not in known:
            raise NothingToDecide(turn)
    for name in members:
        if name not in known.values():
            raise BullpenError(f"No turn of {name} is waiting for a decision.")
    return list(dict.fromkeys([*given.all_turns, *(turn for turn, member in known.items() if member in members)]))


async def hand_over(conversation: Conversation, given: Member, person: str | None) -> str:
    """Let another agent answer."""
    await conversation.hand_over(given.member, given.turn, by=person)
    return ""


async def reorder(conversation: Conversation, given: Turns, person: str | None) -> str:
    """Move waiting turns to the front."""
    await conversation.reorder(given.turns, by=person)
    return ""


async def set_task(conversation: Conversation, given: Task | Nothing, person: str | None) -> str:
    """Show, set or remove the team's task."""
    if isinstance(given, Nothing):
        task = conversation.team_task
        return f"The team's task: {task}" if task else "The team has no task. Set one: /task build the login"
    await conversation.set_task(None if given.task in (None, "", REMOVE) else given.task, by=person)
    return ""


async def rename(conversation: Conversation, given: Title | Nothing, person: str | None) -> str:
    """Show, change or remove the title."""
    if isinstance(given, Title):
        title = None if given.title in (None, REMOVE) else typed_title(given.title)
        await conversation.rename(title, by=person)
    return f"This conversation is called: {title_of(conversation.title, conversation.first_words)}"


async def forget(conversation: Conversation, given: Member, person: str | None) -> str:
    """Let an agent's next turn begin a new session."""
    await conversation.forget(given.member, by=person)
    name = conversation.member(given.member).name
    return f"{name} begins a new session in its next turn, built from the conversation."


async def raise_budgets(conversation: Conversation, given: Raise, person: str | None) -> str:
    """Raise budgets that are used up, or nearly so. The event says by how much."""
    names = {normalized(agent.name) for agent in conversation.team.agents}
    is_shared = given.budget is not None and normalized(given.budget) == CONVERSATION and CONVERSATION not in names
    whose = "" if is_shared else given.budget
    await conversation.raise_budgets(whose, always=given.how == "always", by=person)
    return ""


async def dismiss(conversation: Conversation, given: Which, person: str | None) -> str:
    """Say no to a hand-over, put files back that make programs run, or leave what an undo left."""
    unallowed, programs, left = _unallowed(conversation), _programs(conversation), _left(conversation)
    if unallowed or programs or left or not given.is_empty:
        meant = _meant(conversation, given, {**left, **unallowed, **programs})
        for turn in meant:
            if turn in programs:
                await conversation.undo_programs(turn, by=person)
            elif turn in left:
                await conversation.leave_files(turn, by=person)
        if others := [turn for turn in meant if turn in unallowed]:
            await conversation.drop(turn_ids=others, by=person)
    else:
        await conversation.dismiss_missed_hand_over(by=person)
    return ""


async def take(conversation: Conversation, given: OneTurn, person: str | None) -> str:
    """Take an agent's versions of the files of a conflict, or of a collision."""
    await conversation.take(given.turn, by=person)
    return ""


async def keep(conversation: Conversation, given: OneTurn, person: str | None) -> str:
    """Keep the shared versions of the files of a conflict."""
    await conversation.settle("keep", given.turn, by=person)
    return ""


async def apart(conversation: Conversation, given: OneTurn, person: str | None) -> str:
    """Leave the work of a conflict in the agent's own workspace."""
    is_candidates = await conversation.settle("apart", given.turn, by=person)
    if is_candidates:
        return "Its result stays in its worktree. To merge it later: /pick NAME"
    return "Its next turn continues there, and is merged again. To merge it now: /merge NAME"


async def resolve(conversation: Conversation, given: Member, person: str | None) -> str:
    """Let a member resolve a conflict."""
    await conversation.let_resolve(given.member, given.turn, by=person)
    return ""


async def merge(conversation: Conversation, given: Member, _: str | None) -> str:
    """Bring what an agent did in its own workspace into the shared folder."""
    await conversation.merge(given.member)
    return ""


async def pick(conversation: Conversation, given: Member, person: str | None) -> str:
    """Pick one of several results."""
    await conversation.pick(given.member, given.turn, by=person)
    return ""


async def discard(conversation: Conversation, given: Leftover, person: str | None) -> str:
    """Drop one result that was not picked; all that are left only if that is said."""
    if given.everything:
        await conversation.discard(None, given.turn, by=person)
    elif given.member is not None:
        await conversation.discard(given.member, given.turn, by=person)
    elif given.turn is not None:
        await conversation.discard(given.turn, by=person)
    else:
        left = listed(f"{one.member} (turn {one.turn})" for one in conversation.droppable())
        raise BullpenError(f"Nothing was dropped. Say which: /discard NAME, /discard TURN, or /discard all for {left}.")
    return ""


async def undo(conversation: Conversation, given: Undone, person: str | None) -> str:
    """Take back what a turn changed in the files. The event says what was put back."""
    await conversation.undo(given.turn, by=person, everything=given.everything)
    return ""


async def redo(conversation: Conversation, given: OneTurn, person: str | None) -> str:
    """Bring back what an undo took back."""
    await conversation.redo(given.turn, by=person)
    return ""


async def rewind(conversation: Conversation, given: ThatTurn, person: str | None) -> str:
    """Put the files into the state that they had after a turn."""
    await conversation.rewind(given.turn, by=person)
    return ""
