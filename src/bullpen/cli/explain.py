"""`bullpen explain`: what an agent saw in a turn, what was left out, and why."""

import argparse
import sys

import msgspec

from bullpen.cli.database import add_database_option, find_conversation, open_store
from bullpen.cli.plain.explanation import print_difference, print_explanation
from bullpen.errors import BullpenError
from bullpen.store.base import Store, Turn
from bullpen.text.names import normalized
from bullpen.text.safe import printable
from bullpen.view.difference import difference
from bullpen.view.explanation import explain
from bullpen.view.turn_lookup import LAST, find_turn


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Describe the options."""
    parser.add_argument("turn", metavar="TURN", help="14, or last, or #12: the turn that ended with message 12")
    parser.add_argument("--session", metavar="ID", default=LAST, help="the conversation (default: the latest)")
    parser.add_argument("--diff", metavar="TURN|MEMBER", help="compare with another turn, or with what a member saw")
    parser.add_argument("--prompt", action="store_true", help="print what the agent was given, byte for byte")
    parser.add_argument("--stream", action="store_true", help="print what its program wrote, byte for byte")
    parser.add_argument("--json", action="store_true", help="print JSON for programs")
    add_database_option(parser)


def run(options: argparse.Namespace) -> int:
    """Print what was asked for."""
    with open_store(options) as store:
        conversation_id = find_conversation(store, options.session).id
        turn = find_turn(store, conversation_id, options.turn)
        if options.prompt or options.stream:
            _print_record(store, conversation_id, turn, stream=options.stream)
        elif options.diff is not None:
            other = _other(store, conversation_id, turn, options.diff)
            compared = difference(store, conversation_id, turn.id, other.id)
            print(_json(compared)) if options.json else print_difference(compared)
        else:
            explanation = explain(store, conversation_id, turn.id)
            print(_json(explanation)) if options.json else print_explanation(explanation)
    return 0


def _other(store: Store, conversation_id: str, turn: Turn, reference: str) -> Turn:
    """Return the turn to compare with: a member's answer to the same message, else its last turn before this one."""
    turns = store.turns(conversation_id)
    for other in turns:
        if other.id == reference:
            return other
    before = True
    nearest: Turn | None = None
    for other in turns:
        before = before and other.id != turn.id
        if other.id == turn.id or other.started_at is None or normalized(other.member) != normalized(reference):
            continue
        if other.message_id == turn.message_id:
            return other
        nearest = other if before else nearest
    if nearest is None:
        raise BullpenError(
            f"{reference} has had no turn for the same message, and none before turn {turn.id}, in {conversation_id}. "
            "Name a turn, or another member."
        )
    return nearest


def _print_record(store: Store, conversation_id: str, turn: Turn, *, stream: bool) -> None:
    record = store.record(conversation_id, turn.id)
    if record is None:
        raise BullpenError(f"Turn {turn.id} of {conversation_id} is {turn.state}: its agent was given nothing yet.")
    if stream and record.stream_is_cut:
        print("There was more than is kept; this is its beginning.", file=sys.stderr)
    if not stream and record.system is not None:
        print(f"The system text of {len(record.system.encode()):,} bytes went beside it: see --json.", file=sys.stderr)
    data = record.stream if stream else record.prompt.encode()
    if sys.stdout.isatty():
        print(printable(data.decode(errors="replace")))
    else:
        sys.stdout.flush()
        sys.stdout.buffer.write(data)


def _json(value: object) -> str:
    return msgspec.json.encode(value).decode()
