"""What the server needs to know about a vendor's API, and what all vendors share."""

import json
from collections.abc import Callable, Iterator
from typing import Any

from msgspec import Struct

from bullpen.testing.models.script import ModelRequest, Reply, Vendor

Json = dict[str, Any]

NOT_FOUND = Reply(error=404, error_message="Not found")
NOT_JSON = Reply(error=400, error_message="The body is not a JSON object.")


class StreamEvent(Struct, frozen=True):
    """One event of a streamed answer."""

    data: Json
    is_chunk: bool = False
    """Whether it contains a piece of the text, the thinking or a tool's arguments."""


class VendorApi(Struct, frozen=True, kw_only=True):
    """One vendor's API. An answer is made from a reply, the model's name and an id."""

    name: Vendor
    paths: tuple[str, ...]
    """The prefix of its paths."""
    side_answer: Callable[[ModelRequest], Reply | Json | None]
    """The reply to a call that is not part of the conversation, and not in the script; None: it is a model call."""
    answer: Callable[[Reply, str, str], Json]
    """The answer in one piece."""
    stream: Callable[[Reply, str, str], Iterator[StreamEvent]]
    """The answer as the events of a stream."""
    error_body: Callable[[Reply], Json]


def fitting_reply(schema: Any) -> Reply:
    """Return a JSON reply that matches a schema. It uses no tokens, so that the sums of a test stay right."""
    text = json.dumps(example_of(schema))
    return Reply(text=text, input_tokens=0, output_tokens=0, cached_tokens=0)


def example_of(schema: Any) -> Any:
    """Return a small value that matches a JSON schema; Google writes the types in capitals."""
    match schema:
        case {"enum": [first, *_]} | {"const": first}:
            return first
        case {"anyOf": [first, *_]}:
            return example_of(first)
        case {"type": str(kind)}:
            return _example_of_type(kind.lower(), schema)
        case _:
            return "scripted"


def _example_of_type(kind: str, schema: Json) -> Any:
    match kind:
        case "object":
            return {name: example_of(rules) for name, rules in schema.get("properties", {}).items()}
        case "array":
            return [example_of(schema.get("items"))] * schema.get("minItems", 0)
        case "number" | "integer":
            # gemini's router needs a complexity_score of at least 1, and its schema does not say so.
            return schema.get("minimum", 1)
        case "boolean":
            return False
        case "null":
            return None
        case _:
            return "scripted"
