"""The report about one prompt: what it contains, what was left out, and the size of each part."""

from collections.abc import Sequence

from msgspec import Struct

from bullpen.memory import SessionUse

MOST_LINES_NAMED = 10


class ChangedMessage(Struct, frozen=True, kw_only=True):
    """A message that was changed in the prompt, so that its lines cannot be mistaken for somebody else's."""

    id: str
    """Empty for the message that is answered."""
    indented_lines: tuple[int, ...] = ()
    """The lines, counted from 1, that begin like a heading of the prompt or like another speaker's line."""
    code_closed: bool = False
    """Whether its open code block was closed."""

    @property
    def sentence(self) -> str:
        """The change, in a sentence for people."""
        which = self.id or "the message"
        count = len(self.indented_lines)
        lines = ", ".join(map(str, self.indented_lines[:MOST_LINES_NAMED])) + (
            ", …" if count > MOST_LINES_NAMED else ""
        )
        parts = [
            f"line{'s' if count != 1 else ''} {lines} indented, which would read as a heading or as another speaker's"
            if count
            else "",
            "open code block closed" if self.code_closed else "",
        ]
        return f"{which}: {'; '.join(filter(None, parts))}"


class SummaryUse(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A summary in a prompt, in the place of messages that are not shown; or one for which there was no room."""

    number: int
    """Of the message that it is."""
    first: int
    last: int
    """The messages that it covers."""
    is_left_out: bool = False

    @property
    def sentence(self) -> str:
        """Which it is and what it covers, for people."""
        if self.is_left_out:
            return f"without summary #{self.number} of #{self.first} to #{self.last}, for lack of room"
        return f"summary #{self.number} covers #{self.first} to #{self.last}"


class SummedUp(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What a prompt contains that asks for a summary of messages: these, or an earlier summary and those since then."""

    first: int
    last: int
    earlier: int = 0
    """The number of the earlier summary; 0: there is none."""
    after: int = 0
    """The last message that the earlier one covers."""

    @property
    def covered(self) -> str:
        """Which messages are summed up."""
        return _numbers(self.first, self.last)

    @property
    def sentence(self) -> str:
        """What was given, for people."""
        if not self.earlier:
            return f"Summed up: {self.covered}"
        since, before = _numbers(self.after + 1, self.last), _numbers(self.first, self.after)
        return f"Summed up: {since}, and the summary #{self.earlier} of {before}"


def _numbers(first: int, last: int) -> str:
    return f"#{first}" if first == last else f"#{first} to #{last}"


class PromptReport(Struct, frozen=True, kw_only=True):
    """What was kept, dropped and cut, and how many bytes each section takes."""

    agent_type: str
    max_bytes: int
    section_bytes: dict[str, int]
    """UTF-8 bytes with headings: system, team_task, context, message, and the separators between them."""
    context_ids: Sequence[str] = ()
    """The messages that were offered, oldest first; "#1" is the first one if they have no ids."""
    dropped_messages: int = 0
    """How many of the offered messages, from the oldest on, did not fit."""
    message_bytes_cut: int = 0
    """How much of the current message did not fit."""
    instruction_bytes_cut: int = 0
    """How many bytes were cut out of the middle of the instruction file."""
    instruction_files: tuple[str, ...] = ()
    """The instruction files in it, each with those that it imports; older reports do not say."""
    read_by_itself: tuple[str, ...] = ()
    """Instruction files that are not in it, since the agent's program reads them by itself."""
    instruction_problems: tuple[str, ...] = ()
    """Instruction files that could not be read, a sentence for each. They are missing in the prompt."""
    team_task_bytes_cut: int = 0
    """How much of the team task was cut off: its limit is 5 KB."""
    message_id: str = ""
    """The message that is answered; empty if the caller did not say."""
    later_messages: int = 0
    """How many messages came after the one that is answered. They are not offered."""
    changed: tuple[ChangedMessage, ...] = ()
    """The messages that were changed, oldest first."""
    session: SessionUse | None = None
    """The agent's own session in which the turn runs; None: it has none, and the prompt is all that it gets."""
    unseen_messages: int | None = None
    """How many earlier messages the prompt does not contain, as it says; None if it says nothing."""

    stand_in: str = ""
    """Whose program has the turn, if not the member's own: a stand-in, by its name in the team file."""
    summary: SummaryUse | None = None
    """The summary that covers messages which are not shown; None: there is none, or all are shown."""
    summed_up: SummedUp | None = None
    """What it contains to be summed up; None: it does not ask for a summary."""
    rivals: tuple[str, ...] = ()
    """Replies that are not offered: of others who do the same task."""

    blind: tuple[str, ...] = ()
    """Who was who of those whose names are hidden in it, a phrase for each."""

    @property
    def total_bytes(self) -> int:
        """The size of the prompt and the system text."""
        return sum(self.section_bytes.values())

    @property
    def kept_messages(self) -> int:
        """How many of the offered messages are in the prompt."""
        return len(self.context_ids) - self.dropped_messages

    @property
    def kept_ids(self) -> tuple[str, ...]:
        """The context messages in the prompt, oldest first."""
        return tuple(self.context_ids[self.dropped_messages :])

    @property
    def dropped_ids(self) -> tuple[str, ...]:
        """The context messages left out, oldest first."""
        return tuple(self.context_ids[: self.dropped_messages])

    @property
    def remarks(self) -> tuple[str, ...]:
        """Everything unexpected, a phrase for each: cuts, changed lines, messages that came too late."""
        later = self.later_messages
        came_later = f"CONTEXT without {later:,} message{'s' if later > 1 else ''} that came after the one it answers"
        changes = (f"CHANGED {changed.sentence}" for changed in self.changed)
        count = len(self.rivals)
        apart = f"CONTEXT without {count:,} repl{'ies' if count > 1 else 'y'} of others who do the same task"
        summed_up = [] if self.summary is None or self.summary.is_left_out else [f"CONTEXT: {self.summary.sentence}"]
        hidden = [f"NAMES hidden: {', '.join(self.blind)}"] if self.blind else []
        return (
            *self.cuts,
            *hidden,
            *summed_up,
            *([apart] if count else []),
            *([came_later] if later else []),
            *changes,
        )

    @property
    def cuts(self) -> tuple[str, ...]:
        """A phrase for every cut; empty if everything was sent."""
        phrases = (
            *((True, f"SYSTEM without an instruction file: {why.rstrip('.')}") for why in self.instruction_problems),
            (self.instruction_bytes_cut, f"SYSTEM instruction file shortened by {self.instruction_bytes_cut:,} bytes"),
            (self.team_task_bytes_cut, f"TEAM_TASK cut by {self.team_task_bytes_cut:,} bytes"),
            (self.dropped_messages, f"CONTEXT trimmed to {self.kept_messages:,} of {len(self.context_ids):,} messages"),
            (self.summary and self.summary.is_left_out, f"CONTEXT {self.summary.sentence if self.summary else ''}"),
            (self.message_bytes_cut, f"MESSAGE cut by {self.message_bytes_cut:,} bytes"),
        )
        return tuple(phrase for happened, phrase in phrases if happened)
