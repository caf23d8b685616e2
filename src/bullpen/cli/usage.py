"""`bullpen usage`: what turns have used in all conversations: time, tokens and money."""

import argparse
import csv
import sys
from typing import get_args

import msgspec

from bullpen.cli.database import add_database_option
from bullpen.cli.option_types import day
from bullpen.database import open_database, open_source
from bullpen.errors import NoConversations
from bullpen.terminal.tables import print_table, safe_line
from bullpen.text.numbers import duration, money, short_number
from bullpen.view.listing import find_conversation
from bullpen.view.usage import By, UsageRow, UsageTable, usage_table

COLUMNS = ("turns", "failed", "time", "in", "cached", "out", "cost")
NOTHING = "Nothing has been used{}: no turn has ended."


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Describe the options."""
    parser.add_argument("id", metavar="ID", nargs="?", help="only this conversation (default: all)")
    parser.add_argument("--by", choices=get_args(By), default="member", help="what a row is (default: %(default)s)")
    parser.add_argument("--since", metavar="DAY", type=day, help="only turns that ended then or later")
    form = parser.add_mutually_exclusive_group()
    form.add_argument("--json", action="store_true", help="print one JSON object")
    form.add_argument("--csv", action="store_true", help="print comma-separated values")
    add_database_option(parser, or_server=True)


def run(options: argparse.Namespace) -> int:
    """Print the table."""
    table = _table(options)
    if options.json:
        print(msgspec.json.encode(table).decode())
    elif options.csv:
        _print_csv(table)
    elif not table.rows:
        print(NOTHING.format(f" since {options.since}" if options.since else ""))
    else:
        _print(table)
    return 0


def _table(options: argparse.Namespace) -> UsageTable:
    try:
        with open_source(options.db) if isinstance(options.db, str) else open_database(options.db) as database:
            where = None if options.id is None else find_conversation(database, options.id).id
            return usage_table(database, options.by, conversation_id=where, since=options.since or "")
    except NoConversations:
        if options.id is not None or options.db is not None:
            raise
        return UsageTable(by=options.by, rows=(), total=UsageRow(name="total"))


def _print(table: UsageTable) -> None:
    rows = [*table.rows, table.total] if len(table.rows) > 1 else table.rows
    print_table((table.by, *COLUMNS), map(_cells, rows))
    for remark in table.remarks:
        print(f"\n{remark}")


def _cells(row: UsageRow) -> tuple[str, ...]:
    tokens = (row.input_tokens, row.cached_tokens, row.output_tokens)
    return (
        safe_line(row.name),
        f"{row.turns:,}",
        f"{row.failures:,}" if row.failures else "",
        duration(row.seconds),
        *(short_number(number) if number else "" for number in tokens),
        "" if row.cost_usd is None else money(row.cost_usd, is_estimate=row.is_estimate),
    )


def _print_csv(table: UsageTable) -> None:
    fields = UsageRow.__struct_fields__
    writer = csv.writer(sys.stdout)
    writer.writerow((table.by, *fields[1:]))
    for row in table.rows:
        # A spreadsheet takes a name that begins so for a formula.
        name = safe_line(row.name)
        writer.writerow(
            (
                f"'{name}" if name.startswith(("=", "+", "-", "@")) else name,
                *(getattr(row, field) for field in fields[1:]),
            )
        )
