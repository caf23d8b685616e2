"""What an agent is told in a prompt besides what was said: about its last turns, files, and conflicts."""

from bullpen.conversation import conflicts
from bullpen.conversation.memories import Memories
from bullpen.conversation.prepared_turn import SessionPlan
from bullpen.conversation.review_words import for_builder
from bullpen.routing.progress import Progress
from bullpen.routing.queue import WaitingTurn
from bullpen.team.team import Team

ONE_OF_SEVERAL = (
    "You are one of several who do this task, each with a copy of the files; nobody sees what the others do, and one "
    "result is picked. Do all of it yourself: a [NEXT: …] in your reply is not followed."
)


def remark_for(
    turn: WaitingTurn,
    team: Team,
    progress: Progress,
    memories: Memories,
    plan: SessionPlan | None,
    *,
    is_one_of_several: bool = False,
) -> str:
    """Return what the agent of a turn should know. Reads the store."""
    if team.prompts == "specification":
        return ""
    missed = progress.misses.get(turn.member, "") if team.hand_over_note else ""
    summaries = frozenset(summary.number for summary in progress.summaries)
    notes = (
        *(missed, memories.unfinished_note(turn, summaries), memories.files_note(turn, plan, summaries)),
        memories.checks_note(turn, summaries),
        conflicts.note_for(turn.member, progress),
        ONE_OF_SEVERAL if is_one_of_several else "",
        *(for_builder(one) for one in progress.reviews.values() if one.state == "building" and one.turn == turn.id),
    )
    return " ".join(filter(None, notes))
