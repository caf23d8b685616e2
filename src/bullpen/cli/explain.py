"""`bullpen explain`: what an agent was given in a turn, what was left out, and why."""

import argparse
import sys

import msgspec

from bullpen.cli.database import add_database_option
from bullpen.cli.plain.explanation import print_difference, print_explanation
from bullpen.database import Database, open_database
from bullpen.errors import BullpenError
from bullpen.text.safe import printable
from bullpen.view.difference import difference
from bullpen.view.explanation import Explanation, explain
from bullpen.view.listing import find_conversation
from bullpen.view.turn_lookup import LAST, find_turn, turn_to_compare


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Describe the options."""
    parser.add_argument(
        "turn",
        metavar="TURN",
        nargs="?",
        default=LAST,
        help="14, or #12: the turn that ended with message 12 (default: last)",
    )
    parser.add_argument("--session", metavar="ID", default=LAST, help="the conversation (default: the latest here)")
    parser.add_argument("--diff", metavar="TURN|MEMBER", help="compare with another turn, or with what a member saw")
    parser.add_argument("--prompt", action="store_true", help="print what the agent was given, byte for byte")
    parser.add_argument("--stream", action="store_true", help="print what its program wrote, byte for byte")
    parser.add_argument("--json", action="store_true", help="print JSON for programs")
    add_database_option(parser)


def run(options: argparse.Namespace) -> int:
    """Print what was asked for."""
    with open_database(options.db) as database:
        conversation_id = find_conversation(database, options.session).id
        turn = find_turn(database, conversation_id, options.turn)
        explanation = explain(database, conversation_id, turn.id)
        if options.stream:
            _write(_stream(database, explanation))
        elif options.prompt:
            _write(_prompt(explanation))
        elif options.diff is not None:
            other = turn_to_compare(database, conversation_id, turn, options.diff)
            compared = difference(explanation, explain(database, conversation_id, other.id))
            print(_json(compared)) if options.json else print_difference(compared)
        else:
            print(_json(explanation)) if options.json else print_explanation(explanation, options.db)
    return 0


def _prompt(explanation: Explanation) -> bytes:
    if explanation.prompt is None:
        raise BullpenError(f"{explanation.title} of {explanation.conversation_id} has not started: there is no prompt.")
    if explanation.system is not None:
        size = len(explanation.system.encode())
        print(f"It was also given a system text of {size:,} bytes: see --json.", file=sys.stderr)
    return explanation.prompt.encode()


def _stream(database: Database, explanation: Explanation) -> bytes:
    from bullpen.view.steps import turn_record

    record = turn_record(database, explanation.conversation_id, explanation.turn.id) if explanation.turn else None
    if record is None:
        raise BullpenError(
            f"{explanation.title} of {explanation.conversation_id} has not ended: there is no stream yet."
        )
    if record.stream_is_cut:
        print("There was more than is kept; this is its beginning.", file=sys.stderr)
    return record.stream


def _write(data: bytes) -> None:
    """Write every byte; to a terminal only what it would show."""
    if sys.stdout.isatty():
        print(printable(data.decode(errors="replace")))
    else:
        sys.stdout.flush()
        sys.stdout.buffer.write(data)


def _json(value: object) -> str:
    return msgspec.json.encode(value).decode()
