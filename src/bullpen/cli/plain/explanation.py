"""An explanation, or the difference between two, printed for people."""

import shlex
from collections.abc import Iterator, Sequence
from pathlib import Path

from msgspec.structs import replace

from bullpen.cli.typed_commands import to_type
from bullpen.terminal.tables import print_heading, print_indented, safe_line
from bullpen.text.numbers import counted, duration, local_time, money, short_number, tokens
from bullpen.turn_events import Usage
from bullpen.view.decided import decision_sentence
from bullpen.view.difference import Difference
from bullpen.view.explanation import Explanation, SeenMessage

LONGEST_COMMAND = 400
SHARE_OF_BUDGET = "{used:,} of {budget:,} bytes"


def print_explanation(explanation: Explanation, db: Path | None = None) -> None:
    """Print who, when, what it saw and what it did not see, and how to read it word for word."""
    turn = explanation.turn
    state = f", {explanation.state}" if turn else ""
    print_heading(f"{explanation.title} of {explanation.conversation_id}: {explanation.member}{state}")
    for line in _facts(explanation):
        print_indented(line)
    if not explanation.prompt:
        print_indented("Its agent was given nothing yet." if explanation.prompt is None else "Nothing was sent.")
        return
    if explanation.known:
        _print_part("Already in its session", map(_seen_line, explanation.known))
    _print_part("New" if explanation.known else "What it saw", _seen_lines(explanation))
    _print_part("What it did not see", _unseen_lines(explanation))
    if explanation.changed:
        _print_part("What was changed", _changed_lines(explanation))
    if explanation.tool_uses:
        _print_part("What it did with tools", iter(explanation.tool_uses))
    budget = SHARE_OF_BUDGET.format(used=explanation.total_bytes, budget=explanation.max_bytes)
    _print_part(f"Size: {budget}", _sizes(explanation))
    if turn is not None:
        words = f"explain {turn.id} --session {safe_line(explanation.conversation_id)} --prompt"
        print(f"\nWord for word: {to_type(words, db)}")


def print_difference(difference: Difference) -> None:
    """Print what only one of two turns saw, and their prompts as a diff."""
    left, right = (f"{side.title.lower()} ({side.member})" for side in (difference.left, difference.right))
    print_heading(f"{difference.left.conversation_id}: {left} compared with {right}")
    print_indented(f"Both saw {counted(difference.in_both, 'message')}.")
    for name, side in ((left, difference.left), (right, difference.right)):
        if side.known:
            print_indented(f"{name}: {side.known_sentence}; its prompt has only what was new.")
    _print_part(f"Only {left} saw", map(_seen_line, difference.only_left))
    _print_part(f"Only {right} saw", map(_seen_line, difference.only_right))
    sections = (
        f"{one.section.replace('_', ' ')}: {one.left_bytes:,} and {one.right_bytes:,} bytes"
        for one in difference.sections
    )
    _print_part("Sections that differ", sections)
    for name, diff in (("system text", difference.system_diff), ("prompt", difference.prompt_diff)):
        if diff:
            print()
            print_heading(f"The {name}")
            print_indented(diff)


def _print_part(heading: str, lines: Iterator[str]) -> None:
    printed = list(lines)
    print()
    print_heading(heading)
    for line in printed or ["nothing"]:
        print_indented(safe_line(line))


def _facts(explanation: Explanation) -> Iterator[str]:
    turn, answers, asked = explanation.turn, explanation.answers, explanation.asked_by
    yield safe_line(f"answers   #{answers.sequence} {answers.speaker}: {answers.first_words}")
    if asked.id != answers.id:
        yield safe_line(f"asked by  #{asked.sequence} {asked.speaker}: {asked.first_words}")
    if explanation.stand_in:
        yield safe_line(f"by        {explanation.stand_in}, in the role of {explanation.member}")
    if explanation.session is not None:
        yield safe_line(f"session   {explanation.in_session}")
    if explanation.rules:
        yield safe_line(f"rules     {explanation.rules}")
    if turn is None:
        return
    for decision in explanation.decisions:
        yield safe_line(f"decided   {decision_sentence(decision)}")
    if turn.started_at is not None:
        took = "" if explanation.seconds is None else f", took {duration(explanation.seconds)}"
        yield f"started   {local_time(turn.started_at, seconds=True)}{took}"
    if turn.usage is not None:
        yield f"used      {_usage(turn.usage)}"
    if turn.retry_of is not None:
        yield f"retry     of turn {safe_line(turn.retry_of)}"
    if turn.failure is not None:
        yield safe_line(f"failed    {turn.failure.explanation}")
    if explanation.command:
        yield f"command   {_command(explanation.command)}"


def _usage(usage: Usage) -> str:
    cached = f" ({short_number(usage.cached_tokens)} of them cached)" if usage.cached_tokens else ""
    cost = "" if usage.cost_usd is None else f", {money(usage.cost_usd, is_estimate=usage.is_estimate)}"
    return f"{tokens(usage.input_tokens)} in{cached}, {short_number(usage.output_tokens)} out{cost}"


def _command(words: Sequence[str]) -> str:
    text = safe_line(shlex.join(words))
    return text if len(text) <= LONGEST_COMMAND else f"{text[:LONGEST_COMMAND]}… (--json has all of it)"


def _seen_lines(explanation: Explanation) -> Iterator[str]:
    if explanation.summed_up:
        yield f"{explanation.summed_up}."
    yield from map(_seen_line, _seen(explanation))


def _seen(explanation: Explanation) -> Iterator[SeenMessage]:
    yield from (seen for seen in explanation.context if seen.fate != "dropped")
    if explanation.answers.fate != "dropped":
        yield explanation.answers


def _seen_line(seen: SeenMessage) -> str:
    number = "?" if seen.sequence is None else f"#{seen.sequence}"
    why = f" ({seen.why})" if seen.why else ""
    since = f", since turn {seen.since_turn}" if seen.since_turn else ""
    return f"{number} {seen.speaker}, {seen.said_bytes:,} bytes{since}{why}: {seen.first_words}"


def _unseen_lines(explanation: Explanation) -> Iterator[str]:
    yield from (one.sentence for one in explanation.not_offered)
    yield from (_seen_line(seen) for seen in explanation.context if seen.fate == "dropped")
    if explanation.answers.fate == "cut":
        yield f"The end of #{explanation.answers.sequence}: {explanation.answers.why}."
    if explanation.team_task_bytes_cut:
        yield f"The last {explanation.team_task_bytes_cut:,} bytes of the team task, which may have 5,120."
    yield from (f"An instruction file: {problem}" for problem in explanation.instruction_problems)
    if explanation.instruction_bytes_cut:
        yield f"{explanation.instruction_bytes_cut:,} bytes out of the middle of its instruction file."


def _changed_lines(explanation: Explanation) -> Iterator[str]:
    numbers = {seen.id: f"#{seen.sequence}" for seen in explanation.context if seen.sequence is not None}
    numbers[""] = f"#{explanation.answers.sequence}"
    for changed in explanation.changed:
        yield replace(changed, id=numbers.get(changed.id, changed.id)).sentence


def _sizes(explanation: Explanation) -> Iterator[str]:
    for section, size in explanation.sections:
        yield f"{section:<11}{size:>11,}"


def prompt_lines(explanation: Explanation) -> Iterator[str]:
    """Yield the system text, the prompt and its report."""
    member = explanation.member
    if explanation.system:
        yield f"--- system text for {member}, given with the prompt"
        yield explanation.system
    yield f"--- prompt for {member}"
    yield explanation.prompt or ""
    yield f"--- {explanation.total_bytes:,} of {explanation.max_bytes:,} bytes"
    for section, size in explanation.sections:
        yield f"{section:<11}{size:>11,}"
    dropped = sum(seen.fate == "dropped" for seen in explanation.context)
    yield f"{counted(len(explanation.context) - dropped, 'message')} of history" + (
        f", {counted(dropped, 'older one')} did not fit" if dropped else ""
    )
    if explanation.summed_up:
        yield explanation.summed_up
    if explanation.rules:
        yield f"rules: {explanation.rules}"
    if explanation.session is not None:
        yield f"session: {explanation.in_session}"
    if explanation.known:
        yield f"{explanation.known_sentence}; the model gets these and the prompt"
    for remark in explanation.remarks:
        yield f"! {remark}"
