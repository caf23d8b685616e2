"""Team, Member, Limits, Budget: who is in a conversation, what each may do and use, and when it pauses."""

from itertools import cycle
from typing import Literal

from msgspec import Struct

from bullpen.permissions import Permission
from bullpen.prices.price import Price
from bullpen.team.lead import first_to_answer

MemberType = Literal["human", "ai"]
Visibility = Literal["all", "addressed"]
Whitespace = Literal["preserve", "collapse", "specification"]
PromptKind = Literal["bullpen", "specification"]
MemoryKind = Literal["own", "shared"]
WorkspaceKind = Literal["own", "shared"]
ReplyKind = Literal["all", "last"]
OnRed = Literal["ask", "return"]
OnInterrupted = Literal["ask", "retry-once"]
Until = Literal["approved"]

DEFAULT_WINDOW_BYTES = 64 * 1024
SMALLEST_WINDOW = 5
"""Messages that a window in bytes always holds: no fewer than the specification's window."""
DEFAULT_MAX_BYTES = 768 * 1024
EVERYONE = "all"
BULLPEN = "bullpen"
"""Who speaks where neither a person nor an agent does: what checks said is returned in this name."""
EVERY_AGENT = frozenset({EVERYONE, "agents", "everyone", "所有人"})
"""Names for all agents at once, unless a member is called that."""


class Limits(Struct, frozen=True, kw_only=True):
    """When a conversation pauses until a person continues it."""

    turns_per_message: int = 20
    """Agent turns that one message from a person may cause."""
    back_and_forth: int = 6
    """Turns in a row between the same two agents."""
    identical_replies: int = 3
    """Nearly identical replies in a row from one agent."""
    minutes: float | None = None
    tokens: int | None = None
    cost_usd: float | None = None
    overload_retries: int = 0
    """How often a turn that did nothing is tried again by itself if the vendor is overloaded, with growing pauses."""
    on_interrupted: OnInterrupted = "ask"
    """What follows when a turn is lost with its worker: a person decides, or it is run once more by itself."""


class Budget(Struct, frozen=True, kw_only=True):
    """How much may be used in a whole conversation, by all agents or by one; None: as much as they like."""

    turns: int | None = None
    tokens: int | None = None
    cost_usd: float | None = None
    minutes: float | None = None
    """Of work: the time of turns, without that in which people were asked."""


class Member(Struct, frozen=True, kw_only=True):
    """A person or an agent."""

    name: str
    type: MemberType
    display_name: str = ""
    role: str = ""
    color: str = ""
    agent: str = ""
    """The agent type of a known CLI."""
    command: tuple[str, ...] = ()
    """Any other program."""
    model: str | None = None
    cwd: str = "."
    """Relative to the folder of the team file."""
    system_instruction: str = ""
    instruction_file: str | None = None
    """None: the CLI's usual one, if it exists. Empty: none at all."""
    arguments: tuple[str, ...] = ()
    env: tuple[str, ...] = ()
    """Names of environment variables to pass on; never values, which do not belong in a file."""
    stand_in: tuple[str, ...] = ()
    """Members or agent types whose programs take its role while its own cannot be used, the first one first."""
    stand_in_at: float | None = None
    """The share of its budget, or of its program's quota, from which on they do so already; None: when nothing is left.
    """
    permissions: Permission = "read-only"
    allow: tuple[str, ...] = ()
    """Beginnings of commands that it may run without being asked; with permissions "ask", rules."""
    deny: tuple[str, ...] = ()
    """Rules on what it may never do, where people could be asked."""
    ask_timeout: float = 1800.0
    """Seconds that a person has to answer it."""
    sandbox: bool = False
    """Whether the system holds it to its permissions; full permissions are never held."""
    writable: tuple[str, ...] = ()
    """What it may write beside its folder and what is its CLI's own."""
    network: bool = True
    """Whether its programs reach the network."""
    window: int | None = None
    """How many earlier messages it is given; None means by their size."""
    window_bytes: int = DEFAULT_WINDOW_BYTES
    """How many bytes of earlier messages it is given, if there is no window in messages; but at least some."""
    visibility: Visibility = "all"
    max_bytes: int = DEFAULT_MAX_BYTES
    idle_timeout: float = 600.0
    """Seconds without output. May exceed total_timeout if the team file sets only one of them; the smaller one
    applies."""
    total_timeout: float = 3600.0
    budget: Budget = Budget()
    """What it may use in a conversation before people are asked."""
    may_address: tuple[str, ...] | None = None
    """Whom it may hand over to; None means everyone, but a member with full permissions only with a person's yes."""
    memory: MemoryKind | None = None
    """Whether its CLI's own session continues from turn to turn, or each turn is given a window of the conversation.
    None: its own, where that is proven for the CLI."""
    memory_tokens: int | None = None
    """How large its session may become before a new one begins; None: what fits the CLI's usual models."""
    workspace: WorkspaceKind = "shared"
    """Whether it edits the folder itself, or a git worktree of its own that is merged after each of its turns."""
    reply: ReplyKind = "all"
    """Whether all that it says in a turn is its message, or only what it says after its last tool."""
    pool: str = ""
    """The workers that run its turns, on other machines; empty: its turns run where the conversation is open."""

    @property
    def program(self) -> str:
        """Which CLI or program it is; nothing for a person."""
        return self.agent or (self.command[0].rpartition("/")[2] if self.command else "")

    tools: bool = True
    """Whether it can look things up, hand over and ask by calling tools, where its CLI can be given some."""
    may_set_task: bool = False
    may_drop: bool = False
    """Whether its [DROP: …] takes effect."""
    reviews: str = ""
    """The agent whose work it reviews; empty: nobody's."""
    until: Until | None = None
    """When such a review ends."""
    most_rounds: int = 5
    """How many times in a row it is asked for a verdict before a person decides."""


class Check(Struct, frozen=True, kw_only=True):
    """A command that runs in the workspace after a turn that changed files."""

    name: str
    command: tuple[str, ...]
    cwd: str = "."
    """Relative to the folder of the team file."""
    timeout: float = 300.0
    on_red: OnRed = "ask"
    """Whether people decide what to do about a red one, or it goes back to the agent whose turn it ran after."""
    most_returns: int = 3
    """How many times in a row it goes back."""


class SummaryRules(Struct, frozen=True, kw_only=True):
    """Who sums up what agents are no longer shown, and when by itself."""

    summarizer: str = ""
    """Empty: the lead, or the first agent that sees everything."""
    after_bytes: int | None = None
    """How many bytes of messages an agent is not shown when a summary is asked for by itself; None: never."""


class Team(Struct, frozen=True, kw_only=True):
    """Everyone in a conversation, and the rules they share."""

    name: str
    members: tuple[Member, ...]
    lead: str
    """The agent that answers a person who names nobody; or several, as in [NEXT: …]."""
    task: str | None = None
    instruction_file: str | None = None
    prompts: PromptKind = "bullpen"
    """Whether prompts are those of the specification to the letter, with nothing of ours; see as_specified."""
    message_header: bool = True
    """Whether the message to answer starts with its sender, in the layout's own style."""
    whitespace: Whitespace = "preserve"
    """What happens to white space where markers are removed."""
    hand_over_note: bool | str = True
    """Whether agents are told who is in the team and how to hand over; a string replaces the note."""
    limits: Limits = Limits()
    budget: Budget = Budget()
    """What all agents together may use in a conversation before people are asked."""
    summaries: SummaryRules = SummaryRules()
    prices: dict[str, Price] = {}
    """What models cost, if that is not what the list says."""
    checks: tuple[Check, ...] = ()
    """In the order in which they run."""
    outside_files: bool = False
    """Whether instruction files may be outside the folder of the team file."""

    @property
    def task_setters(self) -> frozenset[str]:
        """The names of those who may set the team's task."""
        return frozenset(member.name for member in self.members if member.type == "human" or member.may_set_task)

    def member(self, name: str) -> Member:
        """Return a member by its exact name."""
        return next(member for member in self.members if member.name == name)

    def reviewer_of(self, name: str) -> Member | None:
        """Return the agent that reviews what another one does."""
        return next((member for member in self.members if member.reviews == name), None)

    @property
    def has_own_voice(self) -> bool:
        """Whether bullpen itself asks agents for something: to fix what checks say, or what a review asks for."""
        return bool(self.checks) or any(member.reviews for member in self.members)

    @property
    def first_to_answer(self) -> tuple[str, ...]:
        """The agents that are asked first if a person names nobody."""
        return first_to_answer(self.lead)

    @property
    def people(self) -> tuple[Member, ...]:
        """The members who are human."""
        return tuple(member for member in self.members if member.type == "human")

    @property
    def agents(self) -> tuple[Member, ...]:
        """The members who are programs."""
        return tuple(member for member in self.members if member.type == "ai")


# Red is for errors and white is neutral, so both come last.
PALETTE = ("cyan", "magenta", "green", "yellow", "blue", "white", "red")


def colours_of(team: Team) -> dict[str, str]:
    """Return a color for every member: the one in the team file, else one that few others have."""
    given = {member.color for member in team.members}
    free = cycle([color for color in PALETTE if color not in given] or PALETTE)
    return {member.name: member.color or next(free) for member in team.members}
