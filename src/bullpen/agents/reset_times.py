"""When a quota comes back: from a vendor's own words to a moment."""

import re
from datetime import UTC, datetime, timedelta, tzinfo

_UNITS = {"d": 86_400, "h": 3_600, "m": 60, "s": 1}
_SPAN = re.compile(
    r"(\d{1,9}(?:\.\d{1,9})?)\s*(d(?:ays?)?|h(?:(?:ou)?rs?)?|m(?:in(?:ute)?s?)?|s(?:ec(?:ond)?s?)?)(?![a-z])",
    re.IGNORECASE,
)
_CLOCK = re.compile(r"(?<![\d/:-])(\d{1,2})(?::(\d\d))?\s*(am|pm)?(?![\d/:-])\b", re.IGNORECASE)
_MONTHS = ("jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec")
_DAY = re.compile(
    rf"\b({'|'.join(_MONTHS)})[a-z]*\.? (\d{{1,2}})(?:st|nd|rd|th)?\b,?(?: (20\d\d)\b,?)?(?: at)?", re.IGNORECASE
)
_ZONE = re.compile(r"\b(UTC|GMT|[A-Z][a-z]+/[A-Z][A-Za-z_]+)\b")
_NOON = 12
LONGEST_SECONDS = 32 * 86_400
"""No vendor's quota takes longer; what seems to is not understood."""
JUST_PASSED = timedelta(hours=6)
"""A time of day that has passed so short a time ago is not tomorrow's: it was misread, or the vendor is late."""


def reset_moment(said: str, now: int) -> int | None:
    """Return the moment that a vendor names, in milliseconds since 1970; None if it is not understood.

    It may be a date, a time to wait ("2h 30m", "5 minutes", "20"), or a time of day ("3pm", "14:05 UTC").
    """
    try:
        moment = _date(said, now) or _span(said, now) or _clock(said, now)
    except (ValueError, OverflowError, OSError):
        return None
    return moment if moment is not None and 0 <= moment - now <= 1000 * LONGEST_SECONDS else None


def _date(said: str, now: int) -> int | None:
    zone = _zone(said)
    try:
        found = datetime.fromisoformat(_ZONE.sub("", said).strip(" ()"))
    except ValueError:
        return None
    if found.tzinfo is None and zone is not None:
        found = found.replace(tzinfo=zone)
    return max(now, int(found.timestamp() * 1000))


def _span(said: str, now: int) -> int | None:
    if said.strip().isdecimal():
        # The header Retry-After is in seconds.
        return now + 1000 * int(said)
    parts = _SPAN.findall(said)
    return now + int(1000 * sum(float(number) * _UNITS[unit[0].lower()] for number, unit in parts)) if parts else None


def _clock(said: str, now: int) -> int | None:
    """Return the moment of a time of day, of the day that is named or of the next one."""
    here = datetime.fromtimestamp(now / 1000, _zone(said))
    day, time = _DAY.search(said), _CLOCK.search(_ZONE.sub("", _DAY.sub("", said)))
    if time is None or not (time[2] or time[3]):
        return None
    hour = int(time[1]) if not time[3] else int(time[1]) % _NOON + (_NOON if time[3].lower() == "pm" else 0)
    moment = here.replace(hour=hour, minute=int(time[2] or 0), second=0, microsecond=0)
    if day is not None:
        month = _MONTHS.index(day[1].lower()) + 1
        moment = moment.replace(year=int(day[3] or here.year), month=month, day=int(day[2]))
    elif moment <= here < moment + timedelta(minutes=1):
        # Vendors write no seconds, so it may be any moment of this minute.
        moment += timedelta(minutes=1)
    elif moment <= here:
        if here - moment < JUST_PASSED:
            return None
        moment += timedelta(days=1)
    return int(moment.timestamp() * 1000)


def _zone(said: str) -> tzinfo | None:
    """Return the zone that is named; None: the one of this machine. ValueError is raised for an unknown one."""
    found = _ZONE.search(said)
    if found is None or found[1] in ("UTC", "GMT"):
        return None if found is None else UTC
    from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

    try:
        return ZoneInfo(found[1])
    except ZoneInfoNotFoundError as error:
        raise ValueError(f"there is no such zone: {found[1]}") from error
