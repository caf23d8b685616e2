"""The timeline page: an SVG drawn from the data. Long pauses are cut out, or two mornings would be two dots."""

from collections.abc import Iterable, Sequence

from markupsafe import Markup
from msgspec import Struct
from starlette.requests import Request
from starlette.responses import Response

from bullpen.text.numbers import duration, money, tokens, used
from bullpen.view.activity import turn_word
from bullpen.view.decided import decisions_in
from bullpen.view.listing import conversation_summary
from bullpen.view.timeline import Timeline, TimelineMessage, TimelineTurn
from bullpen.view.timeline import timeline as read_timeline
from bullpen.web.requests import hub_of, id_in
from bullpen.web.responses import page
from bullpen.web.templates import rendered

WIDTH = 960
NAME_WIDTH = 120
ROW_HEIGHT = 34
TOP = 28
BAR_HEIGHT = 16
SILENCE_WIDTH = 26
LEAST_WIDTH = 3.0
LETTER_WIDTH = 5.8
"""Of the labels of pauses, on average, in a wide font."""
# A pause is cut out if it is longer than this fraction of the busy time, and longer than a few seconds.
SILENCE_PART, SILENCE_SECONDS = 0.15, 5.0
MOST_DECISIONS = 500
"""The latest that are shown below it."""


class Bar(Struct, frozen=True, kw_only=True):
    """A turn."""

    turn: TimelineTurn
    row: int
    x: float
    width: float
    label: str


class Dot(Struct, frozen=True, kw_only=True):
    """A message from a person."""

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
    is_estimate: bool
    tokens: int


class Silence(Struct, frozen=True, kw_only=True):
    """A long pause, cut out."""

    x: float
    label: str
    has_room: bool = True
    """Whether its label can be drawn without touching another one."""


class Drawing(Struct, frozen=True, kw_only=True):
    """Everything that is drawn."""

    rows: tuple[Row, ...]
    bars: tuple[Bar, ...]
    dots: tuple[Dot, ...]
    silences: tuple[Silence, ...]
    height: float
    width: int = WIDTH
    curve: str = ""
    """The cost so far, or the tokens if no cost is known, as points of a line."""
    curve_end: str = ""
    began_at: int = 0


class _Axis:
    """Maps times to positions, without the long pauses."""

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
        # With hundreds of pauses there would be no room for anything else.
        self._silence = SILENCE_WIDTH if room > WIDTH / 3 else 0
        self._scale = (room if self._silence else WIDTH - NAME_WIDTH - 12) / shown

    def x(self, moment: int) -> float:
        place = float(NAME_WIDTH)
        for start, end in self._parts:
            if moment <= end:
                return place + max(0, moment - start) * self._scale
            place += (end - start) * self._scale + self._silence
        return place


def drawing(timeline: Timeline) -> Drawing:
    """Return the drawing of a timeline."""
    names, turns = list(timeline.colors), timeline.turns
    moments = ((message.at, message.at) for message in timeline.messages)
    axis = _Axis([*((turn.start, turn.end) for turn in turns), *moments])
    bars = tuple(_bar(turn, names.index(turn.member), axis) for turn in turns)
    height = TOP + ROW_HEIGHT * len(names)
    curve, curve_end = _curve(turns, axis, height)
    return Drawing(
        rows=tuple(_row(name, index, color, turns) for index, (name, color) in enumerate(timeline.colors.items())),
        bars=bars,
        dots=tuple(_dot(message, names.index(message.speaker), axis) for message in timeline.messages),
        silences=_silences(axis),
        height=height + (56 if curve else 12),
        curve=curve,
        curve_end=curve_end,
        began_at=timeline.began_at,
    )


def svg_of(drawn: Drawing, conversation_id: str) -> Markup:
    """Return the drawing as SVG. It uses the colors of the page, and leads to each turn and message."""
    return rendered("timeline.svg", drawn=drawn, id=conversation_id)


async def timeline(request: Request) -> Response:
    """Show the timeline."""
    hub, conversation_id = hub_of(request), id_in(request)
    stored = await hub.read(conversation_summary, conversation_id)
    drawn = drawing(await hub.read(read_timeline, conversation_id))
    svg = svg_of(drawn, conversation_id)
    decided = (await hub.read(decisions_in, conversation_id))[-MOST_DECISIONS:]
    return page("timeline.html", id=conversation_id, title=stored.title, drawn=drawn, svg=svg, decided=decided)


def _merged(busy: Iterable[tuple[int, int]]) -> list[tuple[int, int]]:
    merged: list[tuple[int, int]] = []
    for start, end in sorted(busy):
        if merged and start <= merged[-1][1]:
            merged[-1] = merged[-1][0], max(end, merged[-1][1])
        else:
            merged.append((start, end))
    return merged


def _bar(turn: TimelineTurn, row: int, axis: _Axis) -> Bar:
    x = axis.x(turn.start)
    state = "" if turn.state == "done" else turn_word(turn.state)
    facts = [duration(turn.seconds), used(turn.tokens, turn.cost_usd, is_estimate=turn.is_estimate), state]
    label = f"turn {turn.turn}: {turn.member}, {', '.join(fact for fact in facts if fact)}"
    return Bar(turn=turn, row=row, x=x, width=max(LEAST_WIDTH, axis.x(turn.end) - x), label=label)


def _row(name: str, index: int, color: str, turns: Iterable[TimelineTurn]) -> Row:
    own = [turn for turn in turns if turn.member == name]
    costs = [turn.cost_usd for turn in own if turn.cost_usd is not None]
    return Row(
        name=name,
        color=color,
        y=TOP + index * ROW_HEIGHT,
        turns=len(own),
        seconds=sum(turn.seconds for turn in own),
        tokens=sum(turn.tokens for turn in own),
        cost_usd=sum(costs) if costs else None,
        is_estimate=any(turn.is_estimate for turn in own),
    )


def _silences(axis: _Axis) -> tuple[Silence, ...]:
    """Return the pauses; where labels would touch, those of the longest remain."""
    taken: list[tuple[float, float]] = []
    silences: dict[int, Silence] = {}
    for start, end in sorted(axis.cuts, key=lambda cut: cut[0] - cut[1]):
        x, label = axis.x(start) + SILENCE_WIDTH / 2, duration((end - start) / 1000)
        half = (len(f"pause {label}") + 1) * LETTER_WIDTH / 2
        has_room = x + half <= WIDTH and all(x + half <= left or right <= x - half for left, right in taken)
        taken += [(x - half, x + half)] if has_room else []
        silences[start] = Silence(x=x, label=label, has_room=has_room)
    return tuple(silences[start] for start in sorted(silences))


def _dot(message: TimelineMessage, row: int, axis: _Axis) -> Dot:
    label = f"#{message.sequence}: {message.first_words}"
    return Dot(row=row, x=axis.x(message.at), sequence=message.sequence, label=label)


def _curve(turns: Sequence[TimelineTurn], axis: _Axis, top: float) -> tuple[str, str]:
    """Return the points of the usage so far, and the total in words."""
    ended = sorted(turns, key=lambda turn: turn.end)
    costs = [turn.cost_usd or 0.0 for turn in ended]
    amounts = costs if any(costs) else [float(turn.tokens) for turn in ended]
    if not sum(amounts):
        return "", ""
    bottom, scale = top + 48, 36 / sum(amounts)
    points, so_far = [(float(NAME_WIDTH), bottom)], 0.0
    for turn, amount in zip(ended, amounts, strict=True):
        x = axis.x(turn.end)
        points.append((x, bottom - so_far * scale))
        so_far += amount
        points.append((x, bottom - so_far * scale))
    points.append((float(WIDTH - 12), points[-1][1]))
    cost = money(so_far, is_estimate=any(turn.is_estimate for turn in ended))
    said = cost if any(costs) else tokens(int(so_far))
    return " ".join(f"{x:.1f},{y:.1f}" for x, y in points), f"{said} in total"
