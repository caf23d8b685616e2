"""The tools that agents can call, as an MCP server describes them. calls.py has what each call must look like."""

SERVER = "bullpen"

_NUMBER: dict[str, object] = {"type": "integer", "minimum": 1}


def _tool(
    name: str, description: str, properties: dict[str, object], *required: str, reads: bool = True
) -> dict[str, object]:
    """Return a tool. Each is said to be harmless: some CLIs would ask a person before it is called otherwise."""
    return {
        "name": name,
        "description": description,
        "inputSchema": {
            "type": "object",
            "properties": properties,
            "required": list(required),
            "additionalProperties": False,
        },
        "annotations": {
            "readOnlyHint": reads,
            "destructiveHint": False,
            "idempotentHint": reads,
            "openWorldHint": False,
        },
    }


TOOLS = (
    _tool(
        "read_history",
        "Read what was said in this conversation, also what your prompt does not contain. Without numbers: the newest "
        "messages. Long messages are cut; read_message has all of one.",
        {
            "first": {**_NUMBER, "description": "the number of the first message to read"},
            "last": {**_NUMBER, "description": "the number of the last message to read"},
            "around": {**_NUMBER, "description": "a message to read with those before and after it"},
        },
    ),
    _tool(
        "search",
        "Find messages of this conversation by words in them.",
        {"query": {"type": "string", "description": "words, or the beginning of one"}},
        "query",
    ),
    _tool(
        "read_message",
        "Read one message of this conversation, all of it.",
        {
            "number": {**_NUMBER, "description": "the number of the message"},
            "offset": {"type": "integer", "minimum": 0, "description": "where to continue in a very long one"},
        },
        "number",
    ),
    _tool(
        "read_diff",
        "Read what a turn changed in the files, line by line. Without a turn: the last one that changed any.",
        {
            "turn": {"type": "string", "description": "the number of the turn, for example 7"},
            "message": {
                **_NUMBER,
                "description": "the number of the message that was its reply, instead of the turn's",
            },
        },
    ),
    _tool("team", "See who is in this conversation, what each of them does, who works now, and who waits.", {}),
    _tool(
        "hand_over",
        "Let other members answer after you. It takes effect when your turn ends well; your reply is still what you "
        "say at the end.",
        {
            "to": {
                "type": "array",
                "items": {"type": "string"},
                "minItems": 1,
                "description": "names of members, in the order in which they should answer",
            },
            "at_once": {
                "type": "boolean",
                "description": "let them answer at the same time instead, without seeing each other's answers",
            },
            "note": {"type": "string", "description": "what they should know; it is added to your reply"},
        },
        "to",
        reads=False,
    ),
    _tool(
        "ask_person",
        "Ask the people in this conversation a question, with choices if there are some, and wait for the answer; or "
        "do not wait: then the question is added to your reply, and the answer is a message to you.",
        {
            "question": {"type": "string"},
            "choices": {"type": "array", "items": {"type": "string"}, "description": "the answers that you offer"},
            "wait": {"type": "boolean", "description": "false: continue, and be answered after this turn"},
        },
        "question",
        reads=False,
    ),
    _tool(
        "note",
        "Leave a note in the conversation, for everyone to read. It asks nobody, and is not your reply.",
        {"text": {"type": "string"}},
        "text",
        reads=False,
    ),
)
