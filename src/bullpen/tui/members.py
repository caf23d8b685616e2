"""MembersPanel: who is at work, since when and on what; what everyone has taken; who has failed."""

from textual.content import Content
from textual.widgets import Static

from bullpen.conversation.conversation import Conversation
from bullpen.conversation.running_turn import RunningTurn
from bullpen.team.team import Member
from bullpen.tui.tally import Taken, total
from bullpen.tui.text import count, duration, money, one_line


class MembersPanel(Static):
    """One or two lines for each member."""

    DEFAULT_CSS = "MembersPanel { height: auto; padding: 0 1; }"

    def __init__(self, conversation: Conversation, *, colors: dict[str, str], taken: dict[str, Taken]) -> None:
        super().__init__(id="members", markup=False)
        self._conversation = conversation
        self._colors = colors
        self._taken = taken

    def on_mount(self) -> None:
        """Let the time of those at work run."""
        self.show()
        self.set_interval(1.0, self.tick)

    def tick(self) -> None:
        """Show the time, if somebody is at work."""
        if self._conversation.running:
            self.show()

    def show(self) -> None:
        """Show how everyone stands."""
        members = [self._lines(member) for member in self._conversation.team.members]
        sum_of_all = total(self._taken.values())
        cost = f" · {money(sum_of_all.cost_usd)}" if sum_of_all.cost_usd else ""
        whole = Content.assemble((f"\nΣ {count(sum_of_all.tokens)} tokens{cost}", "dim"))
        self.update(Content("\n").join([*members, whole]))

    def _lines(self, member: Member) -> Content:
        running = [turn for turn in self._conversation.running.values() if turn.turn.member == member.name]
        name = one_line(member.display_name or member.name, 18)
        sign, style = self._sign(member, bool(running))
        first = Content.assemble(
            (f"{sign} ", style), (name, f"bold {self._colors[member.name]}"), (f" {self._kind(member)}", "dim")
        )
        doing = [Content.assemble((f"  {_doing(turn)}", "$text-success")) for turn in running]
        return Content("\n").join([first, *doing, *self._taken_lines(member)])

    def _sign(self, member: Member, is_running: bool) -> tuple[str, str]:
        undecided = {turn.member for turn in self._conversation.undecided}
        if is_running:
            return "●", "$text-success"
        if member.name in undecided:
            return "✗", "$text-error"
        if member.name == self._conversation.waits_for:
            return "◆", "$text-accent"
        return "○", "dim"

    def _kind(self, member: Member) -> str:
        if member.name == self._conversation.waits_for:
            return "your turn" if member.type == "human" else ""
        return one_line(member.agent or (member.command[0].rpartition("/")[2] if member.command else "person"), 14)

    def _taken_lines(self, member: Member) -> list[Content]:
        taken = self._taken.get(member.name)
        if taken is None:
            return []
        cost = f" · {money(taken.cost_usd)}" if taken.cost_usd else ""
        turns = f"{taken.turns} turn{'s' * (taken.turns != 1)}"
        failures = f" · {taken.failures} failed" if taken.failures else ""
        used = f" · {count(taken.tokens)} tok{cost}" if taken.tokens else ""
        return [Content.assemble((f"  {turns}{used}", "dim"), (failures, "$text-error"))]


def _doing(turn: RunningTurn) -> str:
    return f"{one_line(turn.doing, 16)} · {duration(turn.seconds)}"
