"""Two agents and a person change the same lines at the same time, again and again; a model says what must come of it.

Each write has a text of its own, so that one that is lost is seen. The model is a three-way merge of lines, and knows
what people have decided: what is in the shared folder and in both worktrees must be exactly what it says.
"""

import asyncio
import random
from collections import Counter
from collections.abc import Iterable
from pathlib import Path

from tests.conversation.repository_stage import OwnProject

from bullpen.conversation.conflicts import Settling
from bullpen.conversation.conversation import Conversation
from bullpen.conversation.events import Conflicted, ConversationEvent, FilesChanged
from bullpen.view.state import conversation_view, stored_view

Lines = tuple[str, ...]
Files = dict[str, Lines]

AGENTS = ("ann", "bob")
FILE = "a.txt"
PLACES = (2, 9, 16)
"""Lines that are so far apart that changes of two of them can be merged."""
BEFORE: Lines = tuple(f"line {number}" for number in range(20))
KINDS = ("the same line",) * 7 + ("two lines, one of them the same", "different lines", "the same text")
CHOICES: tuple[Settling, ...] = ("take", "keep", "apart", "resolve")
FIX = f"sed -i -e '/^<<<<<<</d' -e '/^=======/d' -e '/^>>>>>>>/d' {FILE}"
REOPENED, KIM_WRITES = 0.1, 0.3
"""How often."""


class Wrong(Exception):
    """A promise is broken, in a sentence."""


def merged(base: Files, ours: Files, theirs: Files) -> tuple[Files, list[str]]:
    """Return three versions merged, and the files with conflicts, which are as in ours."""
    result, conflicts = dict(ours), []
    for name in theirs:
        before, mine, new = base.get(name, ()), ours.get(name, ()), theirs[name]
        if new == before or mine == new:
            continue
        if mine != before and any(a != b != c != a for a, b, c in zip(mine, before, new, strict=True)):
            conflicts.append(name)
        elif mine == before:
            result[name] = new
        else:
            result[name] = tuple(c if a == b else a for a, b, c in zip(mine, before, new, strict=True))
    return result, conflicts


class Model:
    """What must be in the shared folder and in the worktrees."""

    def __init__(self) -> None:
        self.shared: Files = {FILE: BEFORE}
        self.own: dict[str, Files] = {}
        self.base: dict[str, Files] = {}
        self.joined: Lines = ()
        """What a person makes of a file with both versions: one line with what both wrote."""

    def begin(self) -> None:
        """Bring the worktrees up to date that hold no work."""
        for name in AGENTS:
            if self.own.get(name) == self.base.get(name):
                self.own[name], self.base[name] = dict(self.shared), dict(self.shared)

    def merge(self, name: str, how: Settling | None = None) -> list[str]:
        """Merge what an agent did, and return the files with conflicts; without a decision, nothing is merged then."""
        found, conflicts = merged(self.base[name], self.shared, self.own[name])
        if how == "apart" or (conflicts and how is None):
            return conflicts
        if conflicts and how == "take":
            found[FILE] = self.own[name][FILE]
        elif conflicts and how == "resolve":
            found[FILE] = self._both(name)
        self.shared, self.base[name] = found, dict(self.own[name])
        return conflicts

    def _both(self, name: str) -> Lines:
        """Return the file with both versions of a line where two have changed it."""
        versions = zip(self.shared[FILE], self.base[name][FILE], self.own[name][FILE], strict=True)
        both = [(a, c) if a != b != c != a else (c if a == b else a,) for a, b, c in versions]
        self.joined = tuple("+".join(lines) for lines in both)
        return tuple(line for lines in both for line in lines)


class Trials:
    """Rounds in one conversation."""

    def __init__(self, project: OwnProject, chance: random.Random) -> None:
        self.project, self.chance, self.model = project, chance, Model()
        self.counts: Counter[str] = Counter()
        here = project.stage.folder
        for name in AGENTS:
            wait = f"n=$(cat {here}/round); touch {here}/{name}-$n; while [ ! -e {here}/go-$n ]; do sleep 0.01; done"
            project.agent(name, f"{wait}; sh {here}/work-of-{name}")
        project.agent("fixer", FIX, workspace="shared")
        project.write(FILE, _text(BEFORE))
        project.commit()

    async def play(self, first: int, count: int) -> str:
        """Play rounds until one goes wrong, and return what did."""
        conversation_id, number, shown = None, first, dict[str, str]()
        try:
            while number < first + count or shown:
                async with self.project.stage.open(conversation_id) as conversation:
                    conversation_id = conversation.id
                    await self._settle(conversation, shown)
                    number, shown = await self._rounds(conversation, number, first + count)
                self.counts["opened again while a conflict is open"] += bool(shown)
        except Wrong as wrong:
            return f"round {number}: {wrong}"
        return ""

    async def _rounds(self, conversation: Conversation, number: int, end: int) -> tuple[int, dict[str, str]]:
        """Play rounds until it is to be opened again, and return the next number, and the conflicts that are open."""
        for now in range(number, end):
            shown = await self._round(conversation, now)
            if self.chance.random() < REOPENED:
                return now + 1, shown
            await self._settle(conversation, shown)
        return end, {}

    async def _round(self, conversation: Conversation, number: int) -> dict[str, str]:
        """Play one round, and return the turns with conflicts, by their agents."""
        self._prepare(number)
        with conversation.viewing() as viewer:
            await self._let_write(conversation, number)
        shown = self._announced([numbered.event async for numbered in viewer])
        self._check_files(conversation)
        return shown

    def _announced(self, news: list[ConversationEvent]) -> dict[str, str]:
        """Check what people were told in a round, and return the turns with conflicts, by their agents."""
        shown, ended = dict[str, str](), list[str]()
        for event in news:
            if isinstance(event, Conflicted):
                shown[event.member] = event.turn_id
                ended.append(event.member)
                if list(event.files) != (expected := self.model.merge(event.member)):
                    raise Wrong(f"a conflict of {event.member} is announced in {event.files}, not in {expected}")
            elif isinstance(event, FilesChanged) and event.record.kind == "merge":
                ended.append(event.record.member)
                if self.model.merge(event.record.member):
                    raise Wrong(f"{event.record.member} has a conflict, which is not shown, and something is merged")
        if sorted(ended) != sorted(AGENTS):
            raise Wrong(f"of what both did, this was announced as merged or as a conflict: {ended or 'nothing'}")
        self.counts[f"{ended[0]} was first"] += 1
        self.counts["conflicts shown"] += len(shown)
        self.counts["merged without a conflict"] += len(AGENTS) - len(shown)
        return shown

    def _prepare(self, number: int) -> None:
        """Choose what each writes in this round."""
        kind = self.chance.choice(KINDS)
        self.counts[kind] += 1
        place, other = self.chance.sample(PLACES, 2)
        self.model.begin()
        for name in AGENTS:
            text = f"both-{number}" if kind == "the same text" else f"{name}-{number}"
            places = {place} if kind != "different lines" or name == AGENTS[0] else {other}
            if kind.startswith("two lines") and name == AGENTS[1]:
                places.add(other)
            lines = list(self.model.own[name][FILE])
            for one in places:
                lines[one] = text
            self.model.own[name] |= {FILE: tuple(lines), f"of-{name}": (f"{name}-{number}",)}
            self.counts["writes"] += len(places) + 1
            work = "".join(f"sed -i '{one + 1}s/.*/{text}/' {FILE}\n" for one in places)
            script = self.project.stage.folder / f"work-of-{name}"
            script.write_text(f"{work}echo {name}-{number} > of-{name}\n", encoding="utf-8")
        self.place = place

    async def _let_write(self, conversation: Conversation, number: int) -> None:
        """Let both agents write as soon as both have begun; and kim, before either has ended."""
        here = self.project.stage.folder
        (here / "round").write_text(str(number), encoding="utf-8")
        await conversation.say("[NEXT: ann & bob] Go.")
        while not all((here / f"{name}-{number}").exists() for name in AGENTS):
            if conversation.undecided:
                raise Wrong(f"a turn failed: {conversation.undecided[0].reason}")
            await asyncio.sleep(0.005)
        if self.chance.random() < KIM_WRITES:
            lines = list(self.model.shared[FILE])
            lines[self.chance.choice([self.place, *PLACES])] = f"kim-{number}"
            self._write_as_kim(tuple(lines))
        (here / f"go-{number}").touch()
        await conversation.until_quiet()

    def _write_as_kim(self, lines: Lines) -> None:
        self.project.write(FILE, _text(lines))
        self.model.shared = {**self.model.shared, FILE: lines}
        self.counts["writes of a person"] += 1

    async def _settle(self, conversation: Conversation, shown: dict[str, str]) -> None:
        """Decide about conflicts, one after the other."""
        await self._check_shown(conversation, shown.values())
        for member in self.chance.sample(sorted(shown), len(shown)):
            how = self.chance.choice(CHOICES)
            self.counts[f"decided: {how}"] += 1
            has_both = bool(self.model.merge(member, how)) and how == "resolve"
            if how == "resolve":
                await conversation.let_resolve("fixer", shown[member])
                await conversation.until_quiet()
            else:
                await conversation.settle(how, shown[member])
            self._check_files(conversation)
            if has_both:
                self._write_as_kim(self.model.joined)
        await self._check_shown(conversation, ())

    def _check_files(self, conversation: Conversation) -> None:
        for where, folder, expected in (
            ("the shared folder", self.project.folder, self.model.shared),
            *(
                (f"{name}'s worktree", self.project.own(conversation, name), self.model.own[name])
                for name in AGENTS
                if self.model.own[name] != self.model.base[name]
            ),
        ):
            for name, lines in expected.items():
                if (now := _lines(folder / name)) != lines:
                    raise Wrong(f"in {where}, {name} is {_difference(now, lines)}")

    async def _check_shown(self, conversation: Conversation, turns: Iterable[str]) -> None:
        """Check that people are asked about these conflicts and no others, in this process and by what is stored."""
        stored = await conversation.read(stored_view)
        for where, view in (("on the screen", conversation_view(conversation)), ("stored", stored)):
            asked = sorted(one.turn for one in view.decisions if one.kind == "conflict")
            if asked != (expected := sorted(turns)):
                raise Wrong(f"{where}, people are asked about conflicts of the turns {asked}, not of {expected}")


def _text(lines: Lines) -> str:
    return "".join(f"{line}\n" for line in lines)


def _lines(file: Path) -> Lines:
    return tuple(file.read_text(encoding="utf-8").splitlines()) if file.exists() else ()


def _difference(now: Lines, wanted: Lines) -> str:
    lost = [line for line in wanted if line not in now]
    return f"{[line for line in now if line not in wanted]}, and this is lost: {lost}"
