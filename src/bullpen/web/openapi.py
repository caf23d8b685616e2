"""The OpenAPI description, generated from the table of calls."""

import re
from functools import cache
from typing import Any

import msgspec
from starlette.requests import Request
from starlette.responses import Response

from bullpen import __version__
from bullpen.web.access import NEEDS
from bullpen.web.api import CALLS, Call, Parameter
from bullpen.web.requests import LARGEST_NUMBER
from bullpen.web.responses import Problem, json

PATH = "/api/openapi.json"
REFERENCE = "#/components/schemas/{name}"
REFUSALS = {
    "400": "The request cannot be read.",
    "401": "Missing or wrong key.",
    "403": "Your role does not allow it, or the page of another site sent it.",
    "404": "Not found.",
    "409": "Conflicts with the current state.",
    "413": "Too large.",
    "421": "Wrong host name.",
    "503": "The database cannot be written or read.",
}


async def openapi(_: Request) -> Response:
    """Return the description as JSON."""
    return json(description())


@cache
def description() -> dict[str, Any]:
    """Return the OpenAPI 3.1 description of every call."""
    types = [kind for call in CALLS for kind in (call.gives, call.takes) if kind is not None]
    schemas, components = msgspec.json.schema_components([*types, Problem], ref_template=REFERENCE)
    schema_of = dict(zip(map(repr, [*types, Problem]), schemas, strict=True))
    paths: dict[str, dict[str, Any]] = {}
    for call in CALLS:
        paths.setdefault(call.path, {})[call.method.lower()] = _operation(call, schema_of)
    return {
        "openapi": "3.1.0",
        "info": {"title": "bullpen", "version": __version__, "description": "One conversation, every coding agent."},
        "security": [{"token": []}],
        "paths": paths,
        "components": {
            "schemas": components,
            "securitySchemes": {"token": {"type": "http", "scheme": "bearer"}},
        },
    }


def _operation(call: Call, schema_of: dict[str, Any]) -> dict[str, Any]:
    problem = {"application/json": {"schema": schema_of[repr(Problem)]}}
    operation: dict[str, Any] = {
        "summary": call.summary,
        "description": f"Needs the role {NEEDS[call.method, call.path]}.",
        "operationId": f"{call.method.lower()}{re.sub('[^a-z]+', '_', call.path)}".rstrip("_"),
        "parameters": [*_in_path(call), *_others(call)],
        "responses": {
            str(call.status): {"description": "Done.", "content": _content(call, schema_of)},
            **({"200": {"description": call.again, "content": _content(call, schema_of)}} if call.again else {}),
            **{code: {"description": why, "content": problem} for code, why in REFUSALS.items()},
        },
    }
    if call.deprecated:
        operation["deprecated"] = True
    if call.takes is not None:
        operation["requestBody"] = {
            # A body that can be left out is the same as {}.
            "required": any(field.required for field in msgspec.structs.fields(call.takes)),
            "content": {"application/json": {"schema": schema_of[repr(call.takes)]}},
        }
    return operation


def _content(call: Call, schema_of: dict[str, Any]) -> dict[str, Any]:
    if call.streams:
        return {"text/event-stream": {"schema": _event(call.streams, schema_of[repr(call.gives)])}}
    return {call.media_type: {"schema": schema_of[repr(call.gives)]}}


def _event(name: str, data: dict[str, Any]) -> dict[str, Any]:
    """Return the schema of one server-sent event that has JSON in its data."""
    # Written as in https://spec.openapis.org/oas/v3.2.0.html#server-sent-event-streams
    properties = {
        "event": {"const": name},
        "id": {"type": "string", "pattern": "^[0-9]+$"},
        "data": {"type": "string", "contentMediaType": "application/json", "contentSchema": data},
        "retry": {"type": "integer"},
    }
    return {"type": "object", "required": ["event", "id", "data"], "properties": properties}


def _in_path(call: Call) -> list[dict[str, Any]]:
    names = re.findall(r"\{(\w+)\}", call.path)
    return [{"name": name, "in": "path", "required": True, "schema": {"type": "string"}} for name in names]


def _others(call: Call) -> list[dict[str, Any]]:
    return [
        {"name": one.name, "in": one.place, "description": one.purpose, "schema": _values(one)}
        for one in call.parameters
    ]


def _values(one: Parameter) -> dict[str, Any]:
    numbers = {"minimum": one.least, "maximum": LARGEST_NUMBER} if one.type == "integer" else {}
    return {"type": one.type, **numbers}
