"""What was changed in files: the page of a conversation's changes, the lines of a file, and comments on them."""

import asyncio
import secrets
from collections.abc import Sequence
from typing import Literal

from msgspec import Struct
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response

from bullpen.file_changes import ChangeRecord
from bullpen.view.change_lookup import ALL, find_changes
from bullpen.view.change_reading import change_part
from bullpen.view.changes import ChangedFile, ChangeGroup, Changes, author_of, changes_of, way_back
from bullpen.view.combined_changes import kept_beside, key_of
from bullpen.view.diff import FileDiff
from bullpen.view.line_comments import DiffLine, comment_on, line_of
from bullpen.view.listing import conversation_summary
from bullpen.web.identity import takes_part
from bullpen.web.patches import files_of, shown_part
from bullpen.web.requests import checked_id, hub_of, id_in, number_in, number_of, sender_in, view_in
from bullpen.web.responses import done, form_of, page

By = Literal["turn", "member", "all"]
WAYS: dict[By, str] = {"turn": "Per turn", "member": "Per member", "all": "All together"}
MOST_GROUPS = 50
MOST_FILES = 300
"""Files of a group that are listed."""
MOST_OPEN = 40
MOST_OPEN_LINES = 400
"""Files with more lines are closed at first."""
SPLIT = "bullpen-diff"
"""The cookie in which a browser keeps how it shows diffs."""
YEAR_SECONDS = 365 * 24 * 3600


class Part(Struct, frozen=True, kw_only=True):
    """What one change did to a file, or several as one."""

    key: str
    index: int
    """Which file of the change it is."""
    heading: str = ""


class ListedFile(Struct, frozen=True, kw_only=True):
    """A file in the list."""

    file: ChangedFile
    parts: tuple[Part, ...]
    is_open: bool


class Section(Struct, frozen=True, kw_only=True):
    """Files under one heading."""

    group: ChangeGroup
    record: ChangeRecord | None = None
    """The only one in it."""
    files: tuple[ListedFile, ...] = ()
    more: int = 0
    """How many more files there are."""

    @property
    def way_back(self) -> str:
        """The action that takes it back, or brings it back."""
        return "" if self.record is None else way_back(self.record)


async def changes(request: Request) -> Response:
    """Show what was changed: per turn, per member, or all together."""
    hub, conversation_id = hub_of(request), id_in(request)
    stored = await hub.read(conversation_summary, conversation_id)
    asked = request.query_params.get("turns") or ALL
    records = await hub.read(find_changes, conversation_id, asked, patches=False)
    by, before = _way(request.query_params.get("by", "")), number_in(request, "before")
    found = await asyncio.to_thread(changes_of, records, await hub.read(kept_beside))
    sections = _listed(records, found, by, before)
    is_split, view = _is_split(request), await view_in(request)
    answer = page(
        "changes.html",
        id=conversation_id,
        title=stored.title,
        sections=sections[:MOST_GROUPS],
        earlier=sections[MOST_GROUPS - 1].group.key if len(sections) > MOST_GROUPS else "",
        together=found.together,
        turns="" if asked == ALL else asked,
        by=by,
        ways=WAYS,
        is_split=is_split,
        comments=view.is_open and takes_part([one.name for one in view.members if one.type == "human"]),
        colors=view.colors,
        is_open=view.is_open,
        is_earlier=before is not None,
    )
    if "split" in request.query_params:
        kept = "yes" if is_split else "no"
        is_secure = request.app.state.place.is_secure(request.headers.get("host", ""))
        answer.set_cookie(SPLIT, kept, YEAR_SECONDS, path="/c/", httponly=True, samesite="strict", secure=is_secure)
    return answer


async def lines(request: Request) -> Response:
    """Show the lines of one file, or those after some that are shown already, as a part of a page."""
    record, index, diff = await _file(request)
    start, is_split = number_in(request, "from") or 0, _is_split(request)
    part = await asyncio.to_thread(shown_part, diff, start, is_split=is_split)
    return page(
        "patch.html", id=id_in(request), number=key_of(record), index=index, diff=diff, part=part, is_split=is_split
    )


async def commented(request: Request) -> Response:
    """Show the form for a comment on a line."""
    opened = await hub_of(request).require(id_in(request))
    record, index, diff = await _file(request)
    line = _line(diff, request.query_params.get("line", ""))
    people = opened.conversation.team.people
    return page(
        "comment_dialog.html",
        id=id_in(request),
        number=key_of(record),
        index=index,
        line=line,
        key=request.query_params["line"],
        author=author_of(record),
        people=people,
        state=opened.view(),
        message_id=secrets.token_hex(8),
    )


async def comment(request: Request) -> Response:
    """Say something about a line, to the member who wrote it."""
    opened = await hub_of(request).require(id_in(request))
    talk = opened.conversation
    record, _, diff = await _file(request)
    form = await form_of(request)
    text, sender, message_id, key = (form.get(name, [""])[-1] for name in ("text", "sender", "id", "line"))
    said = comment_on(record, _line(diff, key), text)
    await talk.say(said, sender=sender_in(talk, sender, text), message_id=checked_id(message_id))
    return done(
        request, f"/c/{talk.id}", told=f"Your comment was sent to {author_of(record)}. The answer comes in the chat."
    )


def _line(diff: FileDiff, key: str) -> DiffLine:
    """Return the line that a page names by its number; "-12" was removed."""
    number = number_of(key.removeprefix("-"))
    if number is None:
        raise HTTPException(404)
    return line_of(diff, number, is_removed=key.startswith("-"))


async def _file(request: Request) -> tuple[ChangeRecord, int, FileDiff]:
    key, index = request.path_params["number"], number_of(request.path_params["file"])
    if index is None or None in map(number_of, key.split("-", 1)):
        raise HTTPException(404)
    record = await hub_of(request).read(change_part, id_in(request), key)
    files = await asyncio.to_thread(files_of, record.changes)
    if index >= len(files):
        raise HTTPException(404)
    return record, index, files[index]


def _way(given: str) -> By:
    return next((way for way in WAYS if way == given), "turn")


def _is_split(request: Request) -> bool:
    return request.query_params.get("split", request.cookies.get(SPLIT, "no")) == "yes"


def _listed(records: Sequence[ChangeRecord], found: Changes, by: By, before: int | None) -> list[Section]:
    """Return the groups that are shown: of turns, the latest first."""
    listing = _Listing([*found.combined, *records], found)
    if by == "turn":
        groups = [one for one in reversed(found.turns) if before is None or int(one.key) < before][: MOST_GROUPS + 1]
        return [listing.section(one, is_turn=True, is_open=one is groups[0]) for one in groups]
    groups = list(found.members) if by == "member" else [found.together] if records else []
    return [listing.section(group) for group in groups]


class _Listing:
    """Finds the files of groups in their records."""

    def __init__(self, records: Sequence[ChangeRecord], found: Changes) -> None:
        self._known = {key_of(record): record for record in records}
        self._titles = {one.key: one.title for one in found.turns}
        self._places: dict[str, dict[str, int]] = {}

    def section(self, group: ChangeGroup, *, is_turn: bool = False, is_open: bool = False) -> Section:
        """Return a group with its files."""
        files = group.files[:MOST_FILES]
        listed = [
            ListedFile(
                file=file,
                parts=self._parts(file),
                is_open=is_open and place < MOST_OPEN and file.added + file.removed <= MOST_OPEN_LINES,
            )
            for place, file in enumerate(files)
        ]
        record = self._known[group.key] if is_turn else None
        return Section(group=group, record=record, files=tuple(listed), more=len(group.files) - len(files))

    def _parts(self, file: ChangedFile) -> tuple[Part, ...]:
        """Return what each change did to a file, which may have had another name before."""
        path, parts = file.path, []
        for key in reversed(file.parts):
            index = self._place(key, path)
            heading = self._titles[key] if len(file.parts) > 1 else ""
            parts.append(Part(key=key, index=index, heading=heading))
            path = self._known[key].changes.files[index].renamed_from or path
        return tuple(reversed(parts))

    def _place(self, key: str, path: str) -> int:
        if key not in self._places:
            files = self._known[key].changes.files
            self._places[key] = {file.path: place for place, file in enumerate(files)}
        return self._places[key][path]
