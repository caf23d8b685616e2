"""`bullpen preview`: the exact prompt that an agent would be given. Nothing is stored, nothing is sent."""

import argparse
import contextlib
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

import msgspec

from bullpen.cli.database import add_database_option, find_conversation, open_store
from bullpen.cli.plain.prompt import prompt_lines
from bullpen.cli.team_options import team_file
from bullpen.context.manager import ContextManager
from bullpen.context.prompt import AssemblerOutput
from bullpen.conversation.consequences import speaker_of
from bullpen.conversation.member_agent import agent_for
from bullpen.conversation.prompts import Prompts
from bullpen.conversation.stored_history import StoredHistory
from bullpen.errors import BullpenError
from bullpen.markers.grammar import read_markers
from bullpen.messages import ConversationMessage, Routing
from bullpen.routing.progress import Progress
from bullpen.routing.router import Router
from bullpen.store.base import StoredConversation
from bullpen.store.sqlite import SqliteStore
from bullpen.team.file import LoadedTeam, load_team
from bullpen.team.team import Member, Team
from bullpen.text.clean import clean_text
from bullpen.text.safe import printable

PREVIEW = "preview"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Describe the options."""
    parser.add_argument(
        "file", nargs="?", type=Path, metavar="team.toml", help="the team file (default: the session's)"
    )
    parser.add_argument("--to", required=True, metavar="NAME", help="the agent")
    parser.add_argument("--session", metavar="ID", help="in this conversation, or last (default: a new one)")
    parser.add_argument("--message", metavar="TEXT", help="if you said this now (default: the last message)")
    parser.add_argument("--as", dest="sender", metavar="NAME", help="which person of the team says it")
    parser.add_argument("--json", action="store_true", help="print JSON for programs")
    add_database_option(parser)


def run(options: argparse.Namespace) -> int:
    """Print the prompt and the report."""
    with _store(options) as (store, conversation, loaded):
        member, output = _output(store, conversation, loaded, options)
    if options.json:
        sys.stdout.buffer.write(msgspec.json.encode(_as_json(member, output)) + b"\n")
    else:
        print(printable("\n".join(prompt_lines(member.name, output))))
    return 0


@contextlib.contextmanager
def _store(options: argparse.Namespace) -> Iterator[tuple[SqliteStore, StoredConversation, LoadedTeam]]:
    """Open the conversation to look into; for a new one, a file that is gone afterwards."""
    if options.session is not None:
        with open_store(options) as store:
            stored = find_conversation(store, options.session)
            yield store, stored, load_team(team_file(stored, options.file))
        return
    loaded = load_team(team_file(None, options.file))
    with tempfile.TemporaryDirectory(prefix="bullpen-preview-") as folder, SqliteStore(Path(folder, "db")) as store:
        team = loaded.team
        store.create(PREVIEW, team=team.name, team_file=loaded.text, started_at=_now(), team_task=team.task)
        yield store, store.conversation(PREVIEW), loaded


def _output(
    store: SqliteStore, stored: StoredConversation, loaded: LoadedTeam, options: argparse.Namespace
) -> tuple[Member, AssemblerOutput]:
    router = Router(loaded.team)
    member = router.member(options.to)
    if member.type != "ai":
        raise BullpenError(f"{member.name} is a person, and gets no prompt. The agents: {_agents(loaded.team)}.")
    history = StoredHistory(store, stored.id, messages=stored.messages, highest_number=0)
    task, supposed = stored.team_task, None
    if options.message is not None:
        supposed = _message(router, member, options)
        history.append(supposed)
        task = read_markers(supposed.content).team_task or task
    team = loaded.team
    context = ContextManager(
        history=history, team_task=task, whitespace=team.whitespace, task_setters=team.task_setters
    )
    current = context.get_latest_message()
    if current is None:
        raise BullpenError("Nothing has been said yet. Add --message and a text to see what would be sent then.")
    prompts = Prompts(context, store, stored.id, loaded.team, loaded.root)
    remark = msgspec.convert(stored.progress, Progress).misses.get(member.name, "")
    return member, prompts.for_message(current, agent_for(member, loaded.root), remark=remark)


def _message(router: Router, member: Member, options: argparse.Namespace) -> ConversationMessage:
    """Return the message as it would be stored. One that names nobody goes to the member that we look at."""
    text = clean_text(options.message)
    markers = read_markers(text)
    person = router.sender_of(markers, given=options.sender)
    addressees = router.route(person, markers, in_relay=True).addressees or (member.name,)
    routing = Routing(resolved_addressees=addressees)
    return ConversationMessage(id=PREVIEW, content=text, speaker=speaker_of(person), timestamp=_now(), routing=routing)


def _as_json(member: Member, output: AssemblerOutput) -> dict[str, object]:
    report = output.report
    return {
        "member": member.name,
        "prompt": output.prompt,
        "system": output.system_flag,
        "report": {
            **msgspec.to_builtins(report, enc_hook=list),
            "total_bytes": report.total_bytes,
            "cuts": report.cuts,
            "remarks": report.remarks,
        },
    }


def _agents(team: Team) -> str:
    return ", ".join(agent.name for agent in team.agents)


def _now() -> int:
    return time.time_ns() // 1_000_000
