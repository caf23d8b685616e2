"""Best of several: a page with the results of one task beside each other, and the same for programs."""

import asyncio

from msgspec import Struct
from starlette.requests import Request
from starlette.responses import Response

from bullpen.view.best_of import Result, Results, result_changes, results_of
from bullpen.view.diff import FileDiff
from bullpen.view.listing import conversation_summary
from bullpen.web.identity import takes_part
from bullpen.web.patches import files_of
from bullpen.web.requests import hub_of, id_in, view_in
from bullpen.web.responses import json, page

MOST_FILES = 100
"""Files of a result that are listed."""
MOST_OPEN_ROWS = 200
"""Files with more changed lines are closed at first."""


class ListedFile(Struct, frozen=True, kw_only=True):
    """A file of a result."""

    number: int
    """Of the record."""
    index: int
    diff: FileDiff

    @property
    def is_open(self) -> bool:
        """Whether its lines are shown at first."""
        return self.diff.added + self.diff.removed <= MOST_OPEN_ROWS


async def results(request: Request) -> Response:
    """Show the results of one task beside each other."""
    hub, conversation_id = hub_of(request), id_in(request)
    stored, view = await hub.read(conversation_summary, conversation_id), await view_in(request)
    found = await _found(request)
    files = {one.turn: await _files(request, one) for one in found.results}
    return page(
        "results.html",
        id=conversation_id,
        title=stored.title,
        found=found,
        files=files,
        most=MOST_FILES,
        can_decide=view.is_open and takes_part([one.name for one in view.members if one.type == "human"]),
        colors=view.colors,
    )


async def read_results(request: Request) -> Response:
    """Return the results of one task."""
    return json(await _found(request))


async def _found(request: Request) -> Results:
    return await hub_of(request).read(results_of, id_in(request), request.query_params.get("turn", ""))


async def _files(request: Request, result: Result) -> list[ListedFile]:
    records = await hub_of(request).read(result_changes, id_in(request), result)
    return [
        ListedFile(number=record.number, index=index, diff=diff)
        for record in records
        for index, diff in enumerate(await asyncio.to_thread(files_of, record.changes))
    ]
