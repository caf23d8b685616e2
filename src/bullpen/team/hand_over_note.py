"""The note that follows each agent's own instruction: who is in the team, and how to hand over.

It may contain plain markers: system text is never searched for markers.
"""

from bullpen.team.reach import reach
from bullpen.team.team import Member, Team

LONGEST_ROLE = 160
OWN_WORKSPACE = (
    "You work in a git worktree of your own: change files only there, by paths relative to it. What you change is "
    "merged into the shared folder after your turn; what git ignores is not."
)
ASK = "[ASK: yes | no | later] at the end of a question to a person lets them answer with one key."
MOST_LINES = 6
"""Members that get a line of their own; in a larger team the rest share one."""


def hand_over_note(team: Team, member: Member) -> str:
    """Return the note for one member: generated, taken from the team file, or empty."""
    if isinstance(team.hand_over_note, str):
        return team.hand_over_note
    if not team.hand_over_note:
        return ""
    others = [other for other in team.members if other.name != member.name]
    reachable = [other for other in others if reach(member, other) != "never"]
    asks_first = [other.name for other in others if reach(member, other) == "if_allowed"]
    return "\n".join(
        [
            *_who_is_here(team, member, others),
            *_how_to_hand_over(reachable, others),
            *([f"A person is asked before a hand-over to {', '.join(asks_first)} takes effect."] if asks_first else ()),
            *_reviews(team, member),
            *_other_markers(member),
            *((OWN_WORKSPACE,) if member.workspace == "own" and member.permissions != "read-only" else ()),
        ]
    )


def _who_is_here(team: Team, member: Member, others: list[Member]) -> list[str]:
    you = f"{_one_line(member.display_name)} ({member.name})" if _one_line(member.display_name) else member.name
    # A role may be a noun or a verb: "the builder", "reviews".
    role = f" Your role: {_one_line(member.role).rstrip('.')}." if _one_line(member.role) else ""
    lines = [f"You are {you} in the team “{_one_line(team.name)}”.{role} With you in this conversation:"]
    lines += [f"- {_described(other)}" for other in others[:MOST_LINES]]
    if rest := others[MOST_LINES:]:
        lines.append(f"- {'; '.join(map(_described, rest))}")
    return lines


def _described(member: Member) -> str:
    display = _one_line(member.display_name)
    role = _one_line(member.role)
    kind = "person" if member.type == "human" else "agent"
    return member.name + (f" ({display})" if display else "") + f", {kind}" + (f": {role}" if role else "")


def _how_to_hand_over(reachable: list[Member], others: list[Member]) -> list[str]:
    if not reachable:
        return ["You cannot hand over: after your reply the conversation returns to the person who asked."]
    # Agents first: the examples are about turns that start automatically.
    first, *more = sorted(reachable, key=lambda other: other.type == "human")
    lines = ["To hand over, write a marker at the end of your reply, as plain text, not in code or in a quote:"]
    lines.append(f"[NEXT: {first.name}] lets {first.name} answer next.")
    if more:
        lines.append(f"[NEXT: {first.name}, {more[0].name}] lets them answer one after the other.")
    if more and more[0].type == "ai":
        lines.append(
            f"[NEXT: {first.name} & {more[0].name}] lets them answer at the same time; neither sees the other's answer."
        )
    if len(reachable) < len(others):
        lines.append(f"You may hand over only to: {', '.join(other.name for other in reachable)}.")
    lines.append("Spell names as above. Without a marker the conversation returns to the person who asked.")
    return lines


def _reviews(team: Team, member: Member) -> list[str]:
    reviewer = team.reviewer_of(member.name)
    if reviewer is not None:
        return [f"{reviewer.name} reviews what you change, when you hand over to nobody, until it approves."]
    if member.reviews:
        asked = f"You review what {member.reviews} changes, whenever you are asked for a verdict"
        return [f"{asked}: end that reply with a line that is nothing but [VERDICT: approve] or [VERDICT: changes]."]
    return []


def _other_markers(member: Member) -> list[str]:
    task = ["[TEAM_TASK] followed by text sets the task of the whole team."] if member.may_set_task else []
    drop = ["[DROP: name] removes the waiting turns of that member, [DROP: ALL] those of everyone."]
    return [ASK, *task, *(drop if member.may_drop else ())]


def _one_line(text: str) -> str:
    """Return a text from the team file as part of one line, without line breaks and control characters."""
    plain = "".join(filter(str.isprintable, " ".join(text.split())))
    return plain if len(plain) <= LONGEST_ROLE else f"{plain[: LONGEST_ROLE - 1]}…"
