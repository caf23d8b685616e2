"""Numbers and times in words: one spelling of money, tokens, durations, sizes and times for every door."""

import time

from bullpen.clock import now
from bullpen.turn_events import Usage

NO_TIME = "--:--"
LAST_YEAR = 9999


def counted(number: int, noun: str) -> str:
    """Return how many there are: "1 message", "1,200 messages"."""
    return f"{number:,} {noun}" if number == 1 else f"{number:,} {noun}s"


def short_number(number: int) -> str:
    """Return a number in at most five characters: 950, 1.2k, 34k, 5.6M."""
    for unit, size in (("G", 1_000_000_000), ("M", 1_000_000), ("k", 1_000)):
        # What would round up to a thousand of a unit is one of the next.
        if number >= size - size // 2_000:
            value = number / size
            return f"{value:.1f}{unit}" if value < 9.95 else f"{value:.0f}{unit}"
    return str(number)


def tokens(number: int) -> str:
    """Return a number of tokens: "1.2k tokens"."""
    return "1 token" if number == 1 else f"{short_number(number)} tokens"


def money(dollars: float, *, is_estimate: bool = False) -> str:
    """Return an amount of money, with more digits if it is small: $1.25, $0.0031; an estimate as ~$0.0031."""
    about = "~" if is_estimate else ""
    return f"{about}${dollars:,.2f}" if dollars >= 0.1 or not dollars else f"{about}${dollars:.4f}"


def duration(seconds: float) -> str:
    """Return how long something took: 3.5 s, 42 s, 12 min 30 s, 1 h 02 min."""
    seconds = max(0.0, seconds)
    if seconds < 9.95:
        return f"{seconds:.1f} s"
    minutes, rest = divmod(round(seconds), 60)
    if not minutes:
        return f"{rest} s"
    return f"{minutes} min {rest:02} s" if minutes < 60 else f"{minutes // 60} h {minutes % 60:02} min"


def elapsed(seconds: float) -> str:
    """Return for how long something has been running, in whole seconds, so that a clock can count them."""
    whole = max(0, int(seconds))
    return f"{whole} s" if whole < 60 else duration(whole)


def size(number: int) -> str:
    """Return a number of bytes: 950 B, 12.3 KB, 4.5 MB."""
    if number < 1_000:
        return f"{number} B"
    return f"{number / 1_000:.1f} KB" if number < 999_950 else f"{number / 1_000_000:.1f} MB"


def clock(milliseconds: int) -> str:
    """Return the time of day of a moment: 19:31."""
    return local_time(milliseconds)[11:16] or NO_TIME


def local_time(milliseconds: int, *, seconds: bool = False) -> str:
    """Return a moment as the clock here shows it; nothing if it is not one: an imported message may have none."""
    try:
        moment = time.localtime(milliseconds / 1000)
    except (ValueError, OverflowError, OSError):
        return ""
    if not milliseconds or not 1 <= moment.tm_year <= LAST_YEAR:
        return ""
    return time.strftime("%Y-%m-%d %H:%M:%S" if seconds else "%Y-%m-%d %H:%M", moment)


def day_or_clock(milliseconds: int) -> str:
    """Return the time of day if a moment is today, else its day."""
    day, _, hour = local_time(milliseconds).partition(" ")
    return hour if day == local_time(int(now() * 1000)).partition(" ")[0] else day


def moment(milliseconds: int) -> str:
    """Return when something is: the time of day if that is today, else the day, too."""
    said = local_time(milliseconds)
    return said[11:] if said[:10] == local_time(int(now() * 1000))[:10] else said


def day(milliseconds: int) -> str:
    """Return the day of a moment: Mon 2026-11-16; nothing if it is not one."""
    date = local_time(milliseconds)[:10]
    return f"{time.strftime('%a', time.localtime(milliseconds / 1000))} {date}" if date else ""


def used(number: int, cost_usd: float | None, *, is_estimate: bool = False) -> str:
    """Return what was used: "1.2k tokens · $0.0031"; nothing if nothing is known."""
    parts = [tokens(number) if number else "", money(cost_usd, is_estimate=is_estimate) if cost_usd else ""]
    return " · ".join(part for part in parts if part)


def used_by(usage: Usage | None) -> str:
    """Return what one turn has used so far; nothing if its CLI does not say."""
    if usage is None:
        return ""
    return used(usage.input_tokens + usage.output_tokens, usage.cost_usd, is_estimate=usage.is_estimate)


def spent(seconds: float, usage: Usage | None) -> str:
    """Return how long a turn took and what it used: "12 s · 1.2k tokens · $0.05"."""
    return " · ".join(part for part in (duration(seconds), used_by(usage)) if part)
