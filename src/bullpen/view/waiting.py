"""What a waiting turn waits for, in words. Worked out once here, for every door."""

from bullpen.routing.obstacles import Obstacle
from bullpen.routing.queue import WaitingTurn
from bullpen.text.clean import one_line
from bullpen.text.numbers import elapsed, moment


def waits_for(turn: WaitingTurn, obstacle: Obstacle | None, *, is_paused: bool = False, is_asked: bool = False) -> str:
    """Return what a turn waits for; nothing if it is about to begin, or on hold itself.

    `is_asked`: people are asked about files that make programs run, and no turn begins before they decide.
    """
    if obstacle is None and is_asked:
        return "waits for your decision about files that make programs run"
    if obstacle is None:
        return "waits until you continue: /continue" if is_paused else ""
    words = _obstacle_words(turn, obstacle)
    # To decide, or to speak, also ends a pause.
    is_left_paused = is_paused and obstacle.kind in ("step", "member", "workspace", "checks")
    return f"{words}, and until you continue: /continue" if is_left_paused else words


def _obstacle_words(turn: WaitingTurn, obstacle: Obstacle) -> str:
    other = obstacle.turn
    named = f"{other.member} (turn {other.id})"
    match obstacle.kind:
        case "person":
            return f"waits for {other.member} to speak"
        case "hold":
            return "" if other.id == turn.id else f"waits for {named}, which a person must let begin"
        case "decision":
            return f"waits for a decision about {named}"
        case "step":
            return f"waits for {named}: the step before"
        case "member":
            return f"waits for its own turn {other.id}"
        case "workspace":
            return f"waits for {named}: both may edit {one_line(obstacle.workspace)}"
        case "checks":
            return f"waits for the checks of what {other.member} changed (turn {other.id})"
        case "budget":
            return "waits until its budget is raised: /raise"
        case "rest":
            return f"sleeps until {moment(obstacle.until)}: neither {other.member} nor a stand-in can be used before"


def countdown(until: int, now: int) -> str:
    """Return how long it takes until a moment."""
    return f"in {elapsed((until - now) / 1000)}"


def after(turn: WaitingTurn, obstacle: Obstacle | None) -> str:
    """Return the id of the other turn that a turn waits for; nothing if there is none."""
    return "" if obstacle is None or obstacle.turn.id == turn.id else obstacle.turn.id
