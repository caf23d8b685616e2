"""What checks said after turns, in exports: read a few messages at a time, in words, and brought back from JSON."""

from collections.abc import Iterator

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from bullpen.check_results import CheckResult
from bullpen.exchange.changes import LARGEST, MOST_NOTE, imported_name, snake_case
from bullpen.messages import ConversationMessage
from bullpen.store.base import Store
from bullpen.team.keys import LONGEST_CHECK_NAME, check_name
from bullpen.text.clean import one_line
from bullpen.text.safe import printable
from bullpen.view.activity import Light
from bullpen.view.checks import SIGNS, check_light, check_line, check_output

MESSAGES_AT_ONCE = 200
MOST_OUTPUT = 64 * 1024
"""Characters of the output of a check in a file from elsewhere."""


class ShownCheck(Struct, frozen=True, kw_only=True):
    """What a check said, for people. Everything in it is harmless text."""

    heading: str
    light: Light
    is_of_reply: bool
    """Whether the message before it is the reply of the turn that it ran after."""
    output: str


def all_checks(store: Store, conversation_id: str, *, last: int) -> Iterator[CheckResult]:
    """Yield what checks said up to a message, oldest first, with little in memory at a time."""
    for first in range(0, last + 1, MESSAGES_AT_ONCE):
        until = min(first + MESSAGES_AT_ONCE - 1, last)
        yield from store.checks(conversation_id, first=first, last=until)


def shown_check(result: CheckResult, message: ConversationMessage | None) -> ShownCheck:
    """Return what a check said as people read it after a message."""
    is_of_reply = message is not None and message.speaker.role_id == result.member
    after = "" if is_of_reply else f" (after turn {result.turn_id} of {result.member})"
    light = check_light(result)
    return ShownCheck(
        heading=printable(one_line(f"{SIGNS[light]} {check_line(result)}{after}")),
        light=light,
        is_of_reply=is_of_reply,
        output=printable(check_output(result).replace("\r\n", "\n")),
    )


def imported_checks(values: object, messages: int) -> tuple[CheckResult, ...]:
    """Return what checks said in an export, or raise ValueError. One that was running has ended unknown."""
    try:
        results = msgspec.convert(snake_case(values), list[CheckResult])
    except msgspec.ValidationError as error:
        raise ValueError(f"its checks cannot be read: {error}") from error
    numbers = [result.number for result in results]
    if len(set(numbers)) < len(numbers) or not all(0 < number <= LARGEST for number in numbers):
        raise ValueError("its checks are not numbered 1, 2, 3, …")
    if not all(0 <= result.after_message <= messages for result in results):
        raise ValueError(f"its checks are not after any of its {messages} messages")
    if not all(_is_plausible(result) for result in results):
        raise ValueError("its checks have a number or an output that is not plausible")
    return tuple(map(_as_it_can_be, results))


def _as_it_can_be(result: CheckResult) -> CheckResult:
    """Return a run that has ended, and whose names are nothing else."""
    return replace(
        result,
        state="interrupted" if result.state == "running" else result.state,
        turn_id=imported_name(result.turn_id),
        member=imported_name(result.member),
        name=check_name(result.name)[:LONGEST_CHECK_NAME],
        note=imported_name(result.note, MOST_NOTE),
    )


def _is_plausible(result: CheckResult) -> bool:
    numbers = (result.at, result.left_out, result.seconds)
    is_code = result.exit_code is None or abs(result.exit_code) <= LARGEST
    is_short = all(len(text) <= MOST_OUTPUT for text in (result.output, result.workspace, "".join(result.command)))
    return is_code and is_short and all(0 <= number <= LARGEST for number in numbers)
