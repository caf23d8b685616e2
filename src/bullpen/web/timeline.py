"""The timeline: who spoke when, how long each turn took, and what it cost; an SVG drawn from the data.

Long silences are cut out, or a conversation of two mornings would be two dots.
"""

from collections.abc import Iterable, Sequence

from markupsafe import Markup
from msgspec import Struct
from starlette.requests import Request
from starlette.responses import Response

from bullpen.store.base import Store, StoredMessage, Turn
from bullpen.team.colors import colours_of
from bullpen.web.requests import hub_of, id_in
from bullpen.web.responses import page
from bullpen.web.state import team_of
from bullpen.web.templates import money, rendered, short, span

WIDTH = 960
NAME_WIDTH = 120
ROW_HEIGHT = 34
TOP = 28
BAR_HEIGHT = 16
SILENCE_WIDTH = 26
LEAST_WIDTH = 3.0
MOST_MESSAGES = 2_000
MOST_TURNS = 2_000
# A silence is cut out if it is longer than this part of all that is busy, and longer than a few seconds.
SILENCE_PART, SILENCE_SECONDS = 0.15, 5.0


class Bar(Struct, frozen=True, kw_only=True):
    """A turn."""

    turn: Turn
    row: int
    x: float
    width: float
    seconds: float
    tokens: int
    label: str


class Dot(Struct, frozen=True, kw_only=True):
    """A message of a person."""

    row: int
    x: float
    sequence: int
    label: str


class Row(Struct, frozen=True, kw_only=True):
    """A member's line."""

    name: str
    color: str
    y: float
    turns: int
    seconds: float
    cost_usd: float | None
    tokens: int


class Silence(Struct, frozen=True, kw_only=True):
    """A time in which nothing happened, cut out."""

    x: float
    label: str


class Drawing(Struct, frozen=True, kw_only=True):
    """Everything that is drawn."""

    rows: tuple[Row, ...]
    bars: tuple[Bar, ...]
    dots: tuple[Dot, ...]
    silences: tuple[Silence, ...]
    height: float
    width: int = WIDTH
    curve: str = ""
    """The cost so far, or the tokens where no cost is known, as points of a line."""
    curve_end: str = ""
    began_at: int = 0


class _Axis:
    """From moments to places, without the long silences."""

    def __init__(self, busy: Sequence[tuple[int, int]]) -> None:
        merged = _merged(busy)
        total = sum(end - start for start, end in merged) or 1
        longest = max(SILENCE_PART * total, SILENCE_SECONDS * 1000)
        self._parts: list[tuple[int, int]] = []
        self.cuts: list[tuple[int, int]] = []
        for start, end in merged:
            if self._parts and start - self._parts[-1][1] <= longest:
                self._parts[-1] = self._parts[-1][0], end
            else:
                if self._parts:
                    self.cuts.append((self._parts[-1][1], start))
                self._parts.append((start, end))
        shown = sum(end - start for start, end in self._parts) or 1
        room = WIDTH - NAME_WIDTH - 12 - SILENCE_WIDTH * len(self.cuts)
        # With hundreds of silences nothing else would be left.
        self._silence = SILENCE_WIDTH if room > WIDTH / 3 else 0
        self._scale = (room if self._silence else WIDTH - NAME_WIDTH - 12) / shown

    def x(self, moment: int) -> float:
        place = float(NAME_WIDTH)
        for start, end in self._parts:
            if moment <= end:
                return place + max(0, moment - start) * self._scale
            place += (end - start) * self._scale + self._silence
        return place


def drawing(store: Store, conversation_id: str) -> Drawing:
    """Return the drawing of a conversation: its latest two thousand turns and messages."""
    stored = store.conversation(conversation_id)
    turns = [turn for turn in store.turns(conversation_id) if turn.started_at is not None][-MOST_TURNS:]
    messages = store.messages(conversation_id, limit=MOST_MESSAGES)
    words = [one for one in messages if one.message.speaker.type != "ai"]
    team = team_of(stored)
    colors = colours_of(team) if team else {}
    names = list(dict.fromkeys([*colors, *(turn.member for turn in turns), *(_speaker(one) for one in words)]))
    axis = _Axis(
        [*((_start(turn), _end(turn, stored.last_at)) for turn in turns), *((_at(one), _at(one)) for one in words)]
    )
    bars = tuple(_bar(turn, names.index(turn.member), axis, stored.last_at) for turn in turns)
    height = TOP + ROW_HEIGHT * len(names)
    curve, curve_end = _curve(turns, axis, stored.last_at, height)
    return Drawing(
        rows=tuple(_row(name, index, colors.get(name, "white"), bars) for index, name in enumerate(names)),
        bars=bars,
        dots=tuple(_dot(one, names.index(_speaker(one)), axis) for one in words),
        silences=tuple(
            Silence(x=axis.x(start) + SILENCE_WIDTH / 2, label=span((end - start) / 1000)) for start, end in axis.cuts
        ),
        height=height + (56 if curve else 12),
        curve=curve,
        curve_end=curve_end,
        began_at=stored.started_at,
    )


def svg_of(drawn: Drawing) -> Markup:
    """Return the drawing as SVG. Its colours are those of the page that it stands in."""
    return rendered("timeline.svg", drawn=drawn)


async def timeline(request: Request) -> Response:
    """Show the timeline."""
    drawn = await hub_of(request).ask(lambda store: drawing(store, id_in(request)))
    return page("timeline.html", id=id_in(request), drawn=drawn, svg=svg_of(drawn))


def _merged(busy: Iterable[tuple[int, int]]) -> list[tuple[int, int]]:
    merged: list[tuple[int, int]] = []
    for start, end in sorted(busy):
        if merged and start <= merged[-1][1]:
            merged[-1] = merged[-1][0], max(end, merged[-1][1])
        else:
            merged.append((start, end))
    return merged


def _bar(turn: Turn, row: int, axis: _Axis, now: int) -> Bar:
    start, end = _start(turn), _end(turn, now)
    x = axis.x(start)
    seconds = (end - start) / 1000
    label = f"turn {turn.id}: {turn.member}, {span(seconds)}"
    tokens = turn.usage.input_tokens + turn.usage.output_tokens if turn.usage else 0
    label += f", {short(tokens)} tokens" if tokens else ""
    label += f", {money(turn.usage.cost_usd)}" if turn.usage and turn.usage.cost_usd is not None else ""
    label += "" if turn.state == "done" else f", {turn.state}"
    return Bar(
        turn=turn,
        row=row,
        x=x,
        width=max(LEAST_WIDTH, axis.x(end) - x),
        seconds=seconds,
        tokens=tokens,
        label=label,
    )


def _row(name: str, index: int, color: str, bars: Iterable[Bar]) -> Row:
    own = [bar for bar in bars if bar.row == index]
    costs = [bar.turn.usage.cost_usd for bar in own if bar.turn.usage and bar.turn.usage.cost_usd is not None]
    return Row(
        name=name,
        color=color,
        y=TOP + index * ROW_HEIGHT,
        turns=len(own),
        seconds=sum(bar.seconds for bar in own),
        tokens=sum(bar.tokens for bar in own),
        cost_usd=sum(costs) if costs else None,
    )


def _dot(stored: StoredMessage, row: int, axis: _Axis) -> Dot:
    words = " ".join(stored.message.content[:200].split())[:60]
    return Dot(row=row, x=axis.x(_at(stored)), sequence=stored.sequence, label=f"#{stored.sequence}: {words}")


def _curve(turns: Sequence[Turn], axis: _Axis, now: int, top: float) -> tuple[str, str]:
    """Return the points of what was spent so far, and its end in words."""
    ended = sorted((turn for turn in turns if turn.usage), key=lambda turn: _end(turn, now))
    costs = [turn.usage.cost_usd or 0.0 if turn.usage else 0.0 for turn in ended]
    tokens = [float(turn.usage.input_tokens + turn.usage.output_tokens) if turn.usage else 0.0 for turn in ended]
    amounts = costs if any(costs) else tokens
    if not sum(amounts):
        return "", ""
    bottom, scale = top + 48, 36 / sum(amounts)
    points, so_far = [(float(NAME_WIDTH), bottom)], 0.0
    for turn, amount in zip(ended, amounts, strict=True):
        x = axis.x(_end(turn, now))
        points.append((x, bottom - so_far * scale))
        so_far += amount
        points.append((x, bottom - so_far * scale))
    points.append((float(WIDTH - 12), points[-1][1]))
    said = f"{money(so_far)} in all" if any(costs) else f"{short(int(so_far))} tokens in all"
    return " ".join(f"{x:.1f},{y:.1f}" for x, y in points), said


def _start(turn: Turn) -> int:
    return turn.started_at or turn.queued_at


def _end(turn: Turn, now: int) -> int:
    return max(_start(turn), turn.ended_at or now)


def _at(stored: StoredMessage) -> int:
    return stored.message.timestamp


def _speaker(stored: StoredMessage) -> str:
    return stored.message.speaker.role_id
