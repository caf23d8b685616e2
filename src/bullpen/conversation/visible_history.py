"""VisibleHistory: what an agent may look up of its conversation during a turn: no more than it could have been given.

Everything here reads the store, so it is called outside of the event loop.
"""

from collections.abc import Callable, Collection, Iterable, Iterator
from datetime import UTC, datetime

from msgspec.structs import replace

from bullpen.context.agent_types import KINDS
from bullpen.context.assemblers import REMARK_START, ContextAssembler, PlainTextAssembler
from bullpen.context.headings import LineGuard
from bullpen.context.manager import ContextManager
from bullpen.conversation.files_in_prompts import is_there, wanted_diff
from bullpen.conversation.undo_rules import taken_back
from bullpen.errors import UnknownTurn
from bullpen.routing.summaries import Summary, covered_by
from bullpen.store.base import Store, StoredMessage
from bullpen.team.team import Member
from bullpen.text.clean import byte_length, one_line
from bullpen.text.numbers import counted

MOST_BYTES = 32 * 1024
"""Of one answer."""
MOST_OF_MESSAGE = 4 * 1024
"""Bytes of a message among others; read_message has all of it."""
MOST_MESSAGES = 200
"""That are looked at for one answer."""
PAGE = 40
"""That are read at once: about as many as fill an answer."""
AROUND = 5
MOST_OF_LINE = 200
"""Characters of a message that was found, where names are hidden."""
MOST_PAGES = 10
"""Of messages that are looked at for the newest ones that an agent may see."""
MOST_FOUND = 20
MOST_HITS = 2_000
"""That are looked at for those that it may see."""
LOOK_BACK = 1_000
"""How many messages back the last change of files is searched for."""
MESSAGE_STARTS = tuple(f"#{digit}" for digit in range(1, 10))
"""How the line above a message begins: with its number."""


class VisibleHistory:
    """The messages up to the one that a turn answers, as far as its agent may see them."""

    def __init__(
        self,
        store: Store,
        conversation_id: str,
        context: ContextManager,
        member: Member,
        *,
        last: int,
        hidden_ids: Collection[str],
        hidden_turns: Collection[str],
        summaries: Iterable[Summary] = (),
        mask: Callable[[str], str] | None = None,
        guard: LineGuard | None = None,
    ) -> None:
        """`last` is the number of the message that is answered, and nothing of the hidden ones is shown.

        With a mask, names are hidden in all that is shown. The guard protects what only we may write there.
        """
        self.last = last
        self._store = store
        self._id = conversation_id
        self._context = context
        self._member = member
        self._hidden_ids = frozenset(hidden_ids)
        self._hidden_turns = frozenset(hidden_turns)
        hidden = frozenset(map(context.number_of, hidden_ids))
        self._not_for_it = frozenset(one.number for one in summaries if not self._may_have(one, hidden))
        self._mask = mask
        self._guard = guard or tool_guard()

    def read(self, first: int | None, last: int | None, around: int | None) -> tuple[str, str]:
        """Return messages as text, and which those are in a few words."""
        if around is not None:
            first, last = max(around - AROUND, 1), around + AROUND
        if first is None:
            shown = self._that_fit(self._backwards(min(last or self.last, self.last) + 1))[::-1]
        else:
            shown = self._that_fit(self._forwards(first, min(last or self.last, self.last)))
        if not shown:
            return f"There are no messages there that you may see. The last one is #{self.last}.", "nothing"
        numbers = [number for number, _ in shown]
        end = f"{REMARK_START}The last message that you may see is #{self.last}.)"
        more = f"\n\n{end}" if numbers[-1] < self.last else ""
        return "\n\n".join(text for _, text in shown) + more, _range(numbers)

    def message(self, number: int, offset: int) -> tuple[str, str]:
        """Return one message from a place in it, and which it is."""
        found = self._store.messages(self._id, after=number - 1, before=number + 1) if number <= self.last else []
        for stored in self._visible(found):
            content = stored.message.content[offset:]
            piece, length = self._cut(content, MOST_BYTES)
            rest = len(content) - length
            more = f"{REMARK_START}It has {rest:,} more characters: continue at offset {offset + length}.)"
            return f"{_heading(stored)}\n{piece}" + (f"\n\n{more}" if rest else ""), f"#{number}"
        return f"There is no message #{number} that you may see. The last one is #{self.last}.", "nothing"

    def found(self, query: str) -> tuple[str, str]:
        """Return the messages that words are in, and how many there are."""
        hits = self._store.search(query, conversation_id=self._id, limit=MOST_HITS)
        by_number = {hit.sequence: hit for hit in hits if hit.sequence <= self.last}
        newest_first = [number for number in sorted(by_number, reverse=True) if number not in self._not_for_it]
        visible = [number for number in newest_first if self._may_see(by_number[number].message_id)]
        if self._mask is not None:
            return self._found_masked([by_number[number].message_id for number in visible], query)
        if not visible:
            return "Nothing was found.", "nothing"
        found = [(number, by_number[number]) for number in visible]
        lines = [f"#{number} {one_line(hit.speaker.role_name)}: {one_line(hit.snippet)}" for number, hit in found]
        text = "\n".join(lines[:MOST_FOUND])
        return text, counted(min(len(visible), MOST_FOUND), "message")

    def diff(self, turn_id: str, number: int | None) -> tuple[str, str]:
        """Return what a turn changed, and which turn it was: by its id, by its reply, or the last one."""
        if number is not None and not turn_id:
            turn_id = self._turn_of(number)
            if not turn_id:
                return f"There is no reply #{number} that you may see. The last message is #{self.last}.", "nothing"
        chosen = turn_id.removeprefix("turn-").removeprefix("turn ") or self._last_change()
        if not chosen:
            return "No turn that you may see has changed files that bullpen knows of.", "nothing"
        if not self._may_see_turn(chosen):
            return f"There is no turn {chosen} that you may see.", "nothing"
        diff = wanted_diff(self._store, self._id, chosen, 4 * MOST_BYTES, self._hidden_turns)
        return self._guard.guarded(self._masked(diff), has_own_start=False).text, f"the diff of {chosen}"

    def _found_masked(self, message_ids: Iterable[str], query: str) -> tuple[str, str]:
        """Return messages in which words are as they are shown: what a name finds would tell whose it is."""
        words = query.casefold().split()
        shown = [next(self._visible([self._store.message(self._id, message_id)])) for message_id in message_ids]
        found = [one for one in shown if all(word in one.message.content.casefold() for word in words)][:MOST_FOUND]
        lines = [f"{_heading(one)} {one_line(one.message.content)[:MOST_OF_LINE]}" for one in found]
        return "\n".join(lines) or "Nothing was found.", counted(len(found), "message") if found else "nothing"

    def _turn_of(self, number: int) -> str:
        """Return the turn whose reply a message is; nothing if there is none."""
        for stored in self._visible(self._store.messages(self._id, after=number - 1, before=number + 1)):
            asked = stored.message.routing.parent_message_id if stored.message.routing else None
            turns = self._store.turns(self._id, message_id=asked) if asked else []
            return next((turn.id for turn in turns if turn.reply_id == stored.message.id), "")
        return ""

    def _last_change(self) -> str:
        first = max(self.last - LOOK_BACK, 0)
        records = self._store.changes(self._id, first=first, patches=False)
        gone, merged = taken_back(records), {record.turn_id for record in records if record.kind == "merge"}
        changed = [record for record in records if record.kind == "turn" and record.changes.files]
        turns = (record.turn_id for record in reversed(changed) if is_there(record, gone, merged))
        return next((turn for turn in dict.fromkeys(turns) if turn and self._may_see_turn(turn)), "")

    def _may_see_turn(self, turn_id: str) -> bool:
        """Return whether it is the agent's own, or one whose reply it may see."""
        try:
            turn = self._store.turn(self._id, turn_id)
        except UnknownTurn:
            return False
        if turn.id in self._hidden_turns:
            return False
        if turn.member == self._member.name:
            return True
        return turn.reply_id is not None and any(self._visible([self._store.message(self._id, turn.reply_id)]))

    def _forwards(self, first: int, last: int) -> Iterator[StoredMessage]:
        """Yield the messages of a range that may be seen, the oldest first."""
        for start in range(first, min(last + 1, first + MOST_MESSAGES), PAGE):
            end = min(last, start + PAGE - 1, first + MOST_MESSAGES - 1)
            yield from self._visible(self._store.messages(self._id, after=start - 1, before=end + 1, limit=PAGE))

    def _backwards(self, before: int) -> Iterator[StoredMessage]:
        """Yield the messages that may be seen, the newest first: mostly those of the first page fill an answer."""
        for page_number in range(MOST_PAGES):
            size = min(PAGE << page_number, MOST_MESSAGES)
            page = self._store.messages(self._id, before=before, limit=size)
            yield from self._visible(reversed(page))
            if len(page) < size:
                return
            before = page[0].sequence

    def _visible(self, messages: Iterable[StoredMessage]) -> Iterator[StoredMessage]:
        seen = (
            one
            for one in messages
            if one.sequence <= self.last and one.sequence not in self._not_for_it and self._may_see(one.message.id)
        )
        return seen if self._mask is None else map(self._hiding, seen)

    def _may_have(self, summary: Summary, hidden: Collection[int]) -> bool:
        """Return whether the agent may read a summary: as in its prompts, if it may see all that it covers."""
        if summary.dropped_by or any(number in summary.covered for number in hidden):
            return False
        return self._member.visibility == "all" or self._context.sees_all(
            self._member.name, self._names, summary.first, summary.last
        )

    def _hiding(self, stored: StoredMessage) -> StoredMessage:
        """Return a message without the names that are hidden, before it is cut anywhere."""
        message = stored.message
        to = tuple(sorted(map(self._masked, message.routing.resolved_addressees))) if message.routing else ()
        return replace(
            stored,
            message=replace(
                message,
                content=self._masked(message.content),
                speaker=replace(message.speaker, role_name=self._masked(message.speaker.role_name)),
                routing=replace(message.routing, resolved_addressees=to) if message.routing else None,
            ),
        )

    def _masked(self, text: str) -> str:
        return text if self._mask is None else self._mask(text)

    def _may_see(self, message_id: str) -> bool:
        if message_id in self._hidden_ids:
            return False
        if self._member.visibility == "all":
            return True
        return self._context.may_see(self._member.name, self._names, message_id)

    def _that_fit(self, messages: Iterable[StoredMessage]) -> list[tuple[int, str]]:
        """Return the first messages for which there is room; each has its number."""
        shown: list[tuple[int, str]] = []
        room = MOST_BYTES
        for stored in messages:
            text = self._short(stored)
            room -= byte_length(text)
            if shown and room < 0:
                break
            shown.append((stored.sequence, text))
        return shown

    def _short(self, stored: StoredMessage) -> str:
        content = stored.message.content
        piece, length = self._cut(content, MOST_OF_MESSAGE)
        rest = len(content) - length
        more = f"\n{REMARK_START}cut: {rest:,} more characters, with read_message)" if rest else ""
        return f"{_heading(stored)}\n{piece}{more}"

    def _cut(self, text: str, most: int) -> tuple[str, int]:
        """Return the beginning of a text as it may be shown, up to a number of bytes, and how much of it that is.

        It is guarded after it was cut, which may open code.
        """
        room = most
        while True:
            piece = _cut(text, room)
            guarded = self._guard.guarded(piece, has_own_start=False).text
            shown = self._guard.closed(guarded)
            if byte_length(shown) <= most or len(piece) <= 1:
                return shown, len(piece)
            room = room * 3 // 5

    @property
    def _names(self) -> list[str]:
        return [name for name in (self._member.name, self._member.display_name) if name]


def tool_guard(names: Iterable[str] = ()) -> LineGuard:
    """Return what protects answers of tools: what prompts protect, and lines that begin a message or a remark there."""
    kinds: list[type[ContextAssembler]] = [*KINDS.values(), PlainTextAssembler]
    layouts = [kind.layout for kind in kinds]
    headings = tuple(dict.fromkeys(heading for layout in layouts for heading in layout.headings))
    starts = [start for layout in layouts for start in layout.line_starts(tuple(names))]
    speakers = tuple(dict.fromkeys([*starts, *(start.removeprefix("- ") for start in starts), *MESSAGE_STARTS]))
    return LineGuard(headings, speakers, (REMARK_START,))


def _heading(stored: StoredMessage) -> str:
    message = stored.message
    to = one_line(", ".join(message.routing.resolved_addressees)) if message.routing else ""
    when = datetime.fromtimestamp(message.timestamp / 1000, UTC).strftime("%Y-%m-%d %H:%M")
    covered = covered_by(message)
    facts = [
        f"{one_line(message.speaker.role_name)}{f' to {to}' if to else ''}",
        covered.summary_of if covered else "",
        f"{when} UTC",
    ]
    return f"#{stored.sequence} {', '.join(filter(None, facts))}:"


def _cut(text: str, most: int) -> str:
    """Return the beginning of a text, up to a number of bytes."""
    if len(text) <= most // 4 or byte_length(text) <= most:
        return text
    return text[:most].encode()[:most].decode(errors="ignore")


def _range(numbers: list[int]) -> str:
    return f"#{numbers[0]}" if len(numbers) == 1 else f"#{numbers[0]} to #{numbers[-1]}"
