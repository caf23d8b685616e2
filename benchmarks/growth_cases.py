"""Everything that must not become super-linear, as cases in any size: `make bench-quick` checks them."""

import asyncio
import io
from collections.abc import Callable, Iterator
from functools import partial
from itertools import count
from pathlib import Path
from shutil import copy
from tempfile import TemporaryDirectory

from benchmarks.conversation_stage import conversation_in, team_in
from benchmarks.corpus import drafts
from benchmarks.growth import FLAT, Case, check
from benchmarks.markers import TEXTS, Text
from benchmarks.measure import Run
from bullpen.agents import agent_spec
from bullpen.agents.free_reading import only_reads
from bullpen.agents.transcript import Transcript
from bullpen.app import open_team
from bullpen.context import (
    AssemblerInput,
    ContextManager,
    ContextSnapshot,
    GeminiContextAssembler,
    PromptContextMessage,
    read_markers,
    strip_all_markers,
    truncate_to_bytes,
)
from bullpen.conversation import decisions
from bullpen.conversation.broadcast import Broadcast
from bullpen.conversation.events import TurnEvent
from bullpen.conversation.state import ConversationState
from bullpen.conversation.told_apart import ToolTimes
from bullpen.exchange.files import write_export
from bullpen.exchange.forking import fork_conversation
from bullpen.exchange.markdown import quoted
from bullpen.file_changes import FileChange, FolderChanges
from bullpen.messages import ConversationMessage, Routing
from bullpen.routing.missed_hand_overs import missed_hand_over
from bullpen.routing.obstacles import Situation, may_begin
from bullpen.routing.progress import Progress, sketch
from bullpen.routing.queue import TurnQueue, WaitingTurn
from bullpen.routing.reviews import why_unclear
from bullpen.routing.router import Router
from bullpen.store.sqlite import SqliteStore
from bullpen.team.approval_rules import allowing, denying
from bullpen.team.file import LoadedTeam
from bullpen.team.instruction_files import InstructionFile
from bullpen.team.instruction_imports import ReadInstructions, mentions
from bullpen.team.settings_words import settings_words
from bullpen.team.team import Member
from bullpen.terminal.input_area import InputArea
from bullpen.terminal.keys import KeyReader, Pressed, Typed
from bullpen.terminal.line_editor import LineEditor
from bullpen.terminal.wrapping import Wrapper, wrapped
from bullpen.text.excerpt import excerpt
from bullpen.text.fence import fenced
from bullpen.text.patch_excerpt import patch_excerpt
from bullpen.text.safe import EscapeStripper, printable, strip_escape_sequences
from bullpen.turn_events import ApprovalAsked, TextDelta, ToolFinished, ToolStarted
from bullpen.web.growing_markdown import GrowingMarkdown
from bullpen.web.markdown import render

KIBIBYTE = 1024
LONG_PASTE = 50_000
ATTACHED = (
    "ok\n",
    "an error\n",
    "~",
    "~~~~\n",
    "x",
    "diff --git a/x b/x\n+y\n",
    "diff --git a/ b/",
    "AssertionErrorError ",
)
"""Logs and patches."""
AGENT = "claude-code"
WRITTEN = (
    "- `code` and text\n",
    "1. do `this`\n",
    "- a\n  - `b`\n",
    "- it`s\n",
    "  a `b`\n  it`s\n",
    "| `a` | b |\n",
    "> a\nb `c`\n",
    "> a\nb `c`\n    d\n",
    "> a\nb `c\n",
    "a > b ",
    "- run\n  ```\n  a\n  ```\n",
)
VERDICT_WORDS = (": ", ", ", ".", "?", "approve ? ", "I would ", "等", "if the ", "“”", "\n")
MENTIONS = ("@", "@a", "@max ", " @", "@@max", "`@max", "@mxa ", "@nobody, ", "＠")
HAND_OVERS = (
    "over to max ",
    "@max ",
    "max, ",
    "max please review. ",
    "`[NEXT: max]` ",
    "\\[NEXT: max\\] ",
    "[NEXT: mxa] ",
    "- max: do it\n",
    "交给max。",
    "a",
    " ",
    "\n",
    ". ",
    "> ",
)
GUARDED = (
    "- max: x\n",
    "```\n- max: x\n",
    "Your task:\n",
    "`- max: x\n",
    "- max: `\n",
    "- max: `a`\n",
    "`a`\nmax: x\n",
    "~~~~\n",
    "> ```\n",
)
ESCAPES = ("\x1b[31m", "\x1b]", "\x1b", "\x1b]0;x\x07", "\x1b[")
SHOWN = ("a", "ab ", "\x1b[31m", "字", "\r", "\n", "\t", "e\u0301", "\u202e", "👩‍💻")
MARKDOWN = (
    "*a ",
    "**a",
    "_a_ ",
    "[a](b) ",
    "![",
    "[",
    "](",
    "> ",
    "- a\n",
    "`a` ",
    "```\n",
    "<b>",
    "&amp;",
    "|a|b|\n",
    "# a\n",
)
ADDRESSED = ("[NEXT: max] ", "[NEXT: m{number}] ", "[DROP: m{number}] ", "[TEAM_TASK: {number}] ")


def cases(folder: Path) -> Iterator[Case]:
    """Yield all cases; databases go into the folder."""
    yield from _about_context()
    yield from _about_texts()
    yield from _about_typing()
    team = team_in(folder)
    yield from _about_routing(team)
    yield from _about_agents()
    yield from _about_questions()
    yield from _about_files(folder)
    yield from _about_viewers()
    yield from _about_stores(folder, team)
    yield from _about_conversations(folder, team)


# The rest is in the order of `cases`. A function that returns a run is called once for each size.


def _about_context() -> Iterator[Case]:
    yield Case("add messages", 500, lambda size: lambda: _manager(size))
    yield Case("assemble a prompt for the first time", 300, _assemble_first)
    yield Case("assemble a prompt of everything again", 300, partial(_assemble_again, max_bytes=10**9))
    yield Case("assemble a prompt of 768 KiB again", 2_000, _assemble_again, FLAT)
    yield Case("assemble a window of 10", 1_000, partial(_assemble_again, window=10), FLAT)
    yield Case("find the messages addressed to one agent", 1_000, _assemble_addressed, FLAT)
    yield Case("assemble a window of 10 with a summary of the rest", 1_000, _assemble_summed_up, FLAT)
    yield Case("export a snapshot", 500, lambda size: _export(_manager(size)))
    yield Case("import a snapshot", 500, lambda size: _import(_manager(size).export_snapshot().to_json()))


def _manager(size: int, max_bytes: int = 768 * KIBIBYTE) -> ContextManager:
    manager = ContextManager(max_bytes=max_bytes)
    for draft in drafts(size):
        manager.add_message(draft)
    return manager


def _assemble_first(size: int) -> Run:
    data = _manager(size, 10**9).export_snapshot().to_json()

    def assemble() -> None:
        manager = ContextManager(max_bytes=10**9)
        manager.import_snapshot(ContextSnapshot.from_json(data))
        _assemble(manager, size)

    return assemble


def _assemble_again(size: int, window: int | None = None, max_bytes: int = 768 * KIBIBYTE) -> Run:
    return partial(_assemble, _manager(size, max_bytes), window or size)


def _assemble(manager: ContextManager, window: int) -> object:
    source = manager.get_context_for_agent("max", AGENT, window_size_override=window)
    return manager.assemble_prompt(AGENT, source)


def _assemble_addressed(size: int) -> Run:
    manager = _manager(size)
    return lambda: manager.get_context_for_agent("max", AGENT, visibility="addressed", window_size_override=10)


def _assemble_summed_up(size: int) -> Run:
    """Return what prepares a prompt in which a summary covers nearly all messages, for one who sees its own."""
    manager, covered = _manager(size), size - 20

    def assemble() -> object:
        manager.sees_all("max", (), 1, covered)
        source = manager.get_context_for_agent(
            "max",
            AGENT,
            window_size_override=10,
            count_unseen=True,
            left_out=[covered + 1],
            summary=(covered + 1, 1, covered),
        )
        return manager.assemble_prompt(AGENT, source)

    return assemble


def _export(manager: ContextManager) -> Run:
    return lambda: manager.export_snapshot().to_json()


def _import(data: bytes) -> Run:
    return lambda: ContextManager().import_snapshot(ContextSnapshot.from_json(data))


def _about_texts() -> Iterator[Case]:
    for text in (*TEXTS, *(Text(unit, "- `a`\n", "[NEXT: x]") for unit in WRITTEN)):
        for name, function in (("read", read_markers), ("strip", strip_all_markers)):
            make = partial(_whole_text, text.beginning, text.after)
            yield Case(f"{name} markers in {text}", 8 * KIBIBYTE, partial(_on_text, function, make))
    for unit in SHOWN:
        yield Case(f"make {unit!r} safe for a terminal", 8 * KIBIBYTE, partial(_on_text, printable, unit))
        yield Case(f"wrap {unit!r} for a terminal", 4 * KIBIBYTE, partial(_on_text, partial(wrapped, columns=80), unit))
        yield Case(f"wrap {unit!r} for a pipe", 64 * KIBIBYTE, partial(_on_text, partial(wrapped, columns=None), unit))
        yield Case(f"wrap {unit!r} piece by piece", 4 * KIBIBYTE, partial(_on_text, _wrap_pieces, unit))
        yield Case(f"quote {unit!r} in Markdown", 8 * KIBIBYTE, partial(_on_text, quoted, unit))
    for unit in ("```", "~~~~\n", "`` ` "):
        yield Case(f"quote {unit!r} in Markdown", 8 * KIBIBYTE, partial(_on_text, quoted, unit))
    for unit in (*SHOWN, *MARKDOWN):
        yield Case(f"render {unit!r} for a browser", 2 * KIBIBYTE, partial(_on_text, render, unit))
    for unit in ("loud **words** and `code` ", "- an item of a list\n"):
        yield Case(f"render {unit!r} piece by piece", 4 * KIBIBYTE, partial(_on_text, _grow, unit))
    for unit in ("a", "e\u0301", "🇩🇪", "👩‍💻"):
        yield Case(f"cut {unit!r} between characters", 16 * KIBIBYTE, partial(_cut, unit))

    for unit in ATTACHED:
        yield Case(f"take parts of {unit!r} for a message", 64 * KIBIBYTE, partial(_on_text, _attach, unit))
    for unit in GUARDED:
        yield Case(f"guard {unit!r} in a message", 4 * KIBIBYTE, partial(_on_text, _guard, unit))
    for unit in ("x", "@a\n", "`@a` ", "@"):
        yield Case(f"find imports in {unit!r}", 8 * KIBIBYTE, partial(_on_text, _find_imports, unit))
    for unit in ESCAPES:
        strip = strip_escape_sequences
        yield Case(f"strip {unit!r} from a reply", 8 * KIBIBYTE, partial(_on_text, strip, unit))
        yield Case(f"strip {unit!r} piece by piece", 4 * KIBIBYTE, partial(_on_text, _strip_pieces, unit))


def _attach(text: str) -> object:
    patch_excerpt(text, most_of_each=4 * KIBIBYTE, most=8 * KIBIBYTE)
    return fenced(excerpt(text, 8 * KIBIBYTE).text)


def _find_imports(text: str) -> object:
    return list(mentions(text))


def _guard(text: str) -> object:
    message = PromptContextMessage(sender="max", content=text)
    return GeminiContextAssembler().assemble(AssemblerInput(context_messages=[message], names=("max", "sarah")))


def _strip_pieces(text: str) -> object:
    stripper = EscapeStripper()
    return [stripper.feed(text[start : start + 16]) for start in range(0, len(text), 16)]


def _wrap_pieces(text: str) -> object:
    wrapper = Wrapper(80)
    return [wrapper.feed(text[start : start + 16]) for start in range(0, len(text), 16)]


def _grow(text: str) -> object:
    growing = GrowingMarkdown()
    for start in range(0, len(text), 200):
        growing.add(text[start : start + 200])
        growing.grow()
    return growing.html


def _whole_text(beginning: Callable[[int], str], after: str, size: int, number: int) -> str:
    return f"{beginning(size)}{number}{after}"


def _on_text(function: Callable[[str], object], make: str | Callable[[int, int], str], size: int) -> Run:
    """Return a run with a new text each time, since some functions cache recent texts."""
    numbers = count()
    if callable(make):
        texts = (make(size, number) for number in numbers)
    else:
        texts = (f"{make * (size // len(make))}{number}" for number in numbers)
    return lambda: function(next(texts))


def _cut(unit: str, size: int) -> Run:
    text = unit * (size // len(unit))
    return lambda: truncate_to_bytes(text, len(text.encode()) - 2)


def _about_typing() -> Iterator[Case]:
    for unit in ("a", "word ", "字", "👍🏽", "e\u0301", "a line\n", "\n", "\t"):
        for where, place in (("at the beginning", 0.0), ("in the middle", 0.5), ("at the end", 1.0)):
            yield Case(f"type {where} of a lot of {unit!r}", LONG_PASTE, partial(_type, unit, place), FLAT)
    for unit in ("a", "\x1b", "\x1b[201", "\r\n"):
        yield Case(f"paste {unit!r}", 64 * KIBIBYTE, partial(_on_text, _paste, unit))


def _type(unit: str, place: float, size: int) -> Run:
    editor = LineEditor()
    editor.put(unit * (size // len(unit)))
    editor.cursor = int(len(editor.text) * place)
    area = InputArea(editor, "kim ▸ ", io.StringIO())

    def press() -> None:
        for key in (Typed("x"), Pressed("left"), Pressed("right"), Pressed("backspace")):
            editor.press(key)
            area.draw()

    return press


def _paste(text: str) -> object:
    reader, editor = KeyReader(), LineEditor()
    data = f"\x1b[200~{text}\x1b[201~".encode()
    for start in range(0, len(data), 64):
        for key in reader.feed(data[start : start + 64]):
            editor.press(key)
    return editor.text


def _about_routing(team: LoadedTeam) -> Iterator[Case]:
    sender, router = team.team.members[0], Router(team.team)
    for unit in HAND_OVERS:
        find = partial(missed_hand_over, sender=sender, team=team.team)
        yield Case(f"find a missed hand-over in {unit!r}", 8 * KIBIBYTE, partial(_on_text, find, unit))
    for unit in ADDRESSED:
        yield Case(f"route {unit!r}", 50, partial(_route, router, sender, unit))
    for unit in MENTIONS:
        mention = partial(router.with_mentions, read_markers(""))
        yield Case(f"find mentions in {unit!r}", 8 * KIBIBYTE, partial(_on_text, mention, unit))
    yield Case("sketch a reply to find a loop", 8 * KIBIBYTE, partial(_on_text, sketch, "one two 3 four 五. "))
    yield Case("find who is next in a queue", 250, _queue)
    for unit in VERDICT_WORDS:
        yield Case(f"find a verdict after {unit!r}", 8 * KIBIBYTE, partial(_on_text, _find_verdict, unit))


def _find_verdict(text: str) -> object:
    text += "\n[VERDICT: approve]"
    return why_unclear(text, read_markers(text))


def _route(router: Router, sender: Member, unit: str, size: int) -> Run:
    markers = read_markers("".join(unit.format(number=number) for number in range(size)))
    return lambda: router.route(sender, markers)


def _queue(size: int) -> Run:
    turns = [WaitingTurn(id=str(n), member=f"m{n % 7}", message_id=str(n // 3), intent=1 + n % 3) for n in range(size)]
    situation = Situation(people=("kim",), held=("7",), workspaces={f"m{n}": f"/{n % 3}" for n in range(5)})

    def work() -> None:
        queue = TurnQueue(turns)
        queue.put_first(turns[-3:])
        queue.remove(turn.id for turn in may_begin(queue.waiting, situation))

    return work


def _about_agents() -> Iterator[Case]:
    record = (
        b'{"type":"stream_event","event":{"type":"content_block_delta","delta":{"type":"text_delta","text":"one "}}}\n'
    )
    yield Case("read a stream of small pieces", 200, lambda size: _stream(record * size, 4096))
    yield Case("read one long line in small chunks", 32 * KIBIBYTE, lambda size: _stream(b"x" * size, 64))
    yield Case("read a stream of broken lines", 8 * KIBIBYTE, lambda size: _stream(b"{\xff\n" * (size // 3), 64))


def _stream(data: bytes, chunk: int) -> Run:
    def read() -> None:
        transcript = Transcript(agent_spec("claude"), lambda _: None)
        for start in range(0, len(data), chunk):
            transcript.feed(data[start : start + chunk])
        transcript.finish()

    return read


def _about_questions() -> Iterator[Case]:
    for unit in ("x", "x ", "git push; "):
        yield Case(f"look at a command of {unit!r}", 64 * KIBIBYTE, partial(_on_text, _look_at, unit))


def _look_at(script: str) -> None:
    command = f"/bin/bash -lc '{script}'"
    asked = ApprovalAsked(id="q", kind="command", tool="Bash", command=command)
    only_reads(command, "/p", "/p")
    allowing(["pytest"], asked)
    denying(["rm -rf"], asked)


def _about_files(folder: Path) -> Iterator[Case]:
    yield Case("tell a person's changes apart", 500, _tell_apart)
    (folder / "rules").mkdir()
    for name, text in (("many", "@{n}.md "), ("one", "@../"), ("lines", "@a\n")):
        yield Case(f"import rules: {name}", 20_000, partial(_import_rules, folder / "rules", text))
    for name, text in (("quotes", '\\"'), ("comments", "/* ")):
        yield Case(f"settings: {name}", 20_000, partial(_settings, folder / "rules", text))


def _tell_apart(size: int) -> Run:
    times = ToolTimes("/x", "/x")
    for number in range(size):
        times.on_event(ToolStarted(id=str(number), name="Edit", input={"file_path": f"a{number}"}))
        times.on_event(ToolFinished(id=str(number)))
    files = tuple(FileChange(path=f"b{number}", kind="changed") for number in range(size))
    changes = FolderChanges(folder="/x", files=files)
    return lambda: times.told_apart(changes, "1", "lee", Path("/x"))


def _import_rules(folder: Path, text: str, size: int) -> Run:
    file = folder / f"rules-{size}.md"
    written = "".join(text.replace("{n}", str(number)) for number in range(size))

    def work() -> None:
        file.write_text(written)
        ReadInstructions(outside_allowed=False).add(InstructionFile(name=file.name, folder=folder))

    return work


def _settings(folder: Path, text: str, size: int) -> Run:
    file = folder / f"settings-{size}.json"

    def work() -> None:
        file.write_text(text * size)
        settings_words(file)

    return work


def _about_viewers() -> Iterator[Case]:
    yield Case("send events to many viewers", 100, lambda size: lambda: asyncio.run(_watched(viewers=size, events=10)))
    yield Case(
        "send many events to a viewer", 1_000, lambda size: lambda: asyncio.run(_watched(viewers=1, events=size))
    )


async def _watched(viewers: int, events: int) -> None:
    broadcast = Broadcast()
    async with asyncio.TaskGroup() as tasks:
        for _ in range(viewers):
            tasks.create_task(_watch(broadcast))
        await asyncio.sleep(0)
        for number in range(events):
            broadcast.publish(TurnEvent(turn_id="1", member="max", event=TextDelta("one ")))
            if number % 100 == 0:
                await asyncio.sleep(0)
        broadcast.close()


async def _watch(broadcast: Broadcast) -> None:
    with broadcast.viewing(after=0) as viewer:
        async for _ in viewer:
            pass


def _about_stores(folder: Path, team: LoadedTeam) -> Iterator[Case]:
    yield Case("append to a store", 50, partial(_append_all, folder, team))
    stored = partial(_stored, folder, team)
    yield Case("read all messages of a store", 200, lambda size: stored(size, _read_all))
    yield Case("read the last messages of a store", 200, lambda size: stored(size, _read_last), FLAT)
    yield Case("search in a store", 200, lambda size: stored(size, _search))
    yield Case("check a store", 200, lambda size: stored(size, lambda store, _: store.fsck()))
    yield Case("export Markdown", 100, lambda size: stored(size, lambda s, i: write_export(s, i, io.StringIO(), "md")))
    yield Case("export HTML", 100, lambda size: stored(size, lambda s, i: write_export(s, i, io.StringIO(), "html")))
    yield Case("fork a conversation", 200, lambda size: stored(size, fork_conversation))


def _append_all(folder: Path, team: LoadedTeam, size: int) -> Run:
    numbers = count()
    messages = [
        ConversationMessage(
            id=f"m{number}", content=draft.content, speaker=draft.speaker, timestamp=number, routing=Routing()
        )
        for number, draft in enumerate(drafts(size))
    ]

    empty = folder / f"append-{size}.db"
    conversation_id = conversation_in(team, empty, 0)

    def append() -> None:
        db = Path(copy(empty, folder / f"append-{size}-{next(numbers)}.db"))
        with SqliteStore(db) as store:
            for message in messages:
                store.append(conversation_id, message)

    return append


def _stored(folder: Path, team: LoadedTeam, size: int, work: Callable[[SqliteStore, str], object]) -> Run:
    db = folder / f"store-{size}.db"
    if not db.exists():
        _conversations[db] = conversation_in(team, db, size)
    store = SqliteStore(db)
    return lambda: work(store, _conversations[db])


_conversations: dict[Path, str] = {}
"""The conversation in each database, so that cases of one size share one."""


def _read_all(store: SqliteStore, conversation_id: str) -> None:
    after = 0
    while page := store.messages(conversation_id, after=after, limit=50):
        after = page[-1].sequence


def _read_last(store: SqliteStore, conversation_id: str) -> object:
    return store.messages(conversation_id, limit=10)


def _search(store: SqliteStore, conversation_id: str) -> object:
    return store.search("snapshot", conversation_id=conversation_id, limit=10**6)


def _about_conversations(folder: Path, team: LoadedTeam) -> Iterator[Case]:
    yield Case("open a conversation again", 200, partial(_resume, folder, team), FLAT)
    yield Case("allow every turn that waits for a yes", 1_000, _allow)


def _resume(folder: Path, team: LoadedTeam, size: int) -> Run:
    db = folder / f"resume-{size}.db"
    conversation_id = conversation_in(team, db, size)

    async def work() -> None:
        async with open_team(team, resume=conversation_id, db=db) as conversation:
            await conversation.messages(limit=50)
            await conversation.say("Hello [NEXT: lee]", sender="kim")

    return lambda: asyncio.run(work())


def _allow(size: int) -> Run:
    ids = [str(number) for number in range(size)]
    state = ConversationState.__new__(ConversationState)
    state.paused = "a limit"
    state.progress = Progress(turns_made=2 * size, unallowed=dict.fromkeys(ids, "max"))
    waiting = [*ids, *(f"other {number}" for number in ids)]
    state.queue = TurnQueue(WaitingTurn(id=id_, member="lee", message_id=id_) for id_ in waiting)
    return lambda: decisions.allow(state, ids, at=1)


def main() -> None:
    """Check everything."""
    with TemporaryDirectory(prefix="bullpen-growth-") as folder:
        bad = check(cases(Path(folder)))
    if bad:
        raise SystemExit(f"These grow faster than allowed: {', '.join(one.name for one in bad)}")


if __name__ == "__main__":
    main()
