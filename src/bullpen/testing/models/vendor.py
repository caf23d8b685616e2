"""What the server must know of a vendor's API, and what all of them share."""

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
    """It carries a piece of the text, the thinking or a tool's arguments."""


class VendorApi(Struct, frozen=True, kw_only=True):
    """How one vendor's API speaks. An answer is made from a reply, the model's name and an id."""

    name: Vendor
    paths: tuple[str, ...]
    """What its paths begin with."""
    side_answer: Callable[[ModelRequest], Reply | Json | None]
    """What a call gets that is none of the conversation's and uses up no script; None: the model itself is asked."""
    answer: Callable[[Reply, str, str], Json]
    """The answer in one piece."""
    stream: Callable[[Reply, str, str], Iterator[StreamEvent]]
    """The answer as the events of a stream."""
    error_body: Callable[[Reply], Json]


def fitting_reply(schema: Any) -> Reply:
    """Return a reply in JSON that fits a schema. It is free, so that it does not spoil the sums of a test."""
    text = json.dumps(example_of(schema))
    return Reply(text=text, input_tokens=0, output_tokens=0, cached_tokens=0)


def example_of(schema: Any) -> Any:
    """Return a small value that fits a JSON schema; Google writes the types in capitals."""
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
            # gemini's router wants at least 1 of its complexity_score, and does not say so in the schema.
            return schema.get("minimum", 1)
        case "boolean":
            return False
        case "null":
            return None
        case _:
            return "scripted"
