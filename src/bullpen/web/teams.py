"""The teams page: which team a new conversation has, and changing a team file.

A changed file runs nothing until the owner has seen what it runs and agrees, as on the command line.
"""

import asyncio
import hashlib
from collections.abc import Sequence
from http import HTTPStatus
from pathlib import Path

from msgspec import Struct
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import RedirectResponse, Response

from bullpen.errors import BullpenError, TeamProblem
from bullpen.team.checks import problems_of
from bullpen.team.file import read_loaded, read_team_file, write_team_file
from bullpen.view.trust_question import trust_question
from bullpen.web.access import may
from bullpen.web.conversations import Hub
from bullpen.web.identity import visitor
from bullpen.web.requests import hub_of
from bullpen.web.responses import form_of, page

CHANGED_SINCE = "The file has changed since you opened it here. Open it again; your text is still in this page."


class KnownTeam(Struct, frozen=True, kw_only=True):
    """A team file that conversations were started with."""

    key: str
    path: Path
    name: str
    members: tuple[tuple[str, str], ...] = ()
    """Each with the program that it is; a person has none."""
    task: str | None = None
    trouble: str = ""
    """Why no conversation can be started with it."""


async def teams(request: Request) -> Response:
    """Show every team that a new conversation can have."""
    hub = hub_of(request)
    known = await asyncio.to_thread(_described, hub, await hub.team_files())
    return page("teams.html", teams=known, may_edit=may(visitor(), "owner here"))


async def edit(request: Request) -> Response:
    """Show a team file to change it."""
    path = await _path_in(request)
    text = await asyncio.to_thread(read_team_file, path)
    return await _editor(request, path, text, before=text)


async def check(request: Request) -> Response:
    """Show what is wrong with a text, next to its lines."""
    path = await _path_in(request)
    text = _one((await form_of(request)).get("text", [""])).replace("\r\n", "\n")
    return page("team_problems.html", problems=await asyncio.to_thread(problems_of, text, path.parent))


async def save(request: Request) -> Response:
    """Save a team file; ask first whether it may run, unless exactly this text already may."""
    path = await _path_in(request)
    form = await form_of(request)
    before = await asyncio.to_thread(read_team_file, path)
    text = _with_line_ends_of(before, _one(form.get("text", [""])))
    decision = _one(form.get("decision", [""]))
    if _one(form.get("before", [""])) != _hash_of(before):
        return await _editor(request, path, text, before=before, told=CHANGED_SINCE)
    problems = await asyncio.to_thread(problems_of, text, path.parent)
    if decision == "edit" or any(problem.severity == "error" for problem in problems):
        return await _editor(request, path, text, before=before, problems=problems)
    return await _saved(request, path, before, text, decision, _one(form.get("reviewed", [""])))


async def _saved(request: Request, path: Path, before: str, text: str, decision: str, reviewed: str) -> Response:
    hub, loaded = hub_of(request), read_loaded(path, text)
    question = await asyncio.to_thread(trust_question, loaded)
    shown = _hash_of("\n".join([*sorted(question.marks), text]))
    is_agreed = decision == "trust" and reviewed == shown
    is_known = hub.trust.knows(loaded.path, text) and question.marks <= hub.trust.agreed(loaded.path)
    if not (is_agreed or decision == "keep" or is_known):
        return page(
            "team_trust.html",
            key=team_key(path),
            question=question,
            text=text,
            before=_hash_of(before),
            reviewed=shown,
        )
    await asyncio.to_thread(write_team_file, path, text)
    if is_agreed:
        await asyncio.to_thread(hub.trust.remember, loaded.path, text, question.marks)
    if hub.trust.knows(loaded.path, text):
        hub.adopt(loaded)
    return RedirectResponse("/teams", status_code=HTTPStatus.SEE_OTHER)


async def _editor(
    request: Request,
    path: Path,
    text: str,
    *,
    before: str,
    problems: Sequence[TeamProblem] | None = None,
    told: str = "",
) -> Response:
    if problems is None:
        problems = await asyncio.to_thread(problems_of, text, path.parent)
    return page(
        "team_edit.html",
        key=team_key(path),
        path=path,
        text=text,
        before=_hash_of(before),
        problems=problems,
        is_trusted=hub_of(request).trust.knows(path, text),
        told=told,
    )


async def _path_in(request: Request) -> Path:
    return await path_of(hub_of(request), request.path_params["key"])


async def path_of(hub: Hub, key: str) -> Path:
    """Return the team file with a key. Only files that are known here have one."""
    for path in await hub.team_files():
        if team_key(path) == key:
            return path
    raise HTTPException(HTTPStatus.NOT_FOUND)


def team_key(path: Path) -> str:
    """Return the name of a team file in an address."""
    return hashlib.sha256(str(path).encode(errors="surrogateescape")).hexdigest()[:16]


def _described(hub: Hub, paths: Sequence[Path]) -> list[KnownTeam]:
    return [_known(hub, path) for path in paths]


def _known(hub: Hub, path: Path) -> KnownTeam:
    try:
        team = hub.trusted_team(path).team
    except BullpenError as error:
        return KnownTeam(key=team_key(path), path=path, name=path.parent.name, trouble=str(error))
    return KnownTeam(
        key=team_key(path),
        path=path,
        name=team.name,
        members=tuple((member.display_name or member.name, member.program) for member in team.members),
        task=team.task,
    )


def _with_line_ends_of(before: str, typed: str) -> str:
    """Return what was typed with the line ends that the file has; browsers send their own."""
    text = typed.replace("\r\n", "\n")
    return text.replace("\n", "\r\n") if "\r\n" in before else text


def _one(values: Sequence[str]) -> str:
    return values[-1]


def _hash_of(text: str) -> str:
    return hashlib.sha256(text.encode(errors="surrogatepass")).hexdigest()
