"""The algorithms of the specification's texts, line by line as they stand there, from nothing of ours.

Of what JavaScript does differently, `\\s` and trim() are written out. Where a text describes a step and gives no code
for it (how a prompt is made smaller), the code follows its list of steps. Nothing here is fast.
"""

import re
from dataclasses import dataclass

JS_SPACE = "\t\n\v\f\r \xa0\u1680\u2000-\u200a\u2028\u2029\u202f\u205f\u3000\ufeff"
TRIM = re.compile(rf"\A[{JS_SPACE}]+|[{JS_SPACE}]+\Z")
SPACES = re.compile(rf"[{JS_SPACE}]{{2,}}")


def trim(text: str | None) -> str:
    return TRIM.sub("", text or "")


def byte_length(text: str) -> int:
    return len(text.encode())


@dataclass
class Speaker:
    role_name: str
    type: str


@dataclass
class Message:
    id: str
    content: str
    speaker: Speaker
    resolved_addressees: list[str]


@dataclass
class ContextMessage:
    from_: str
    to: str
    content: str
    message_id: str


@dataclass
class AssemblerInput:
    context_messages: list[ContextMessage]
    current_message: str
    team_task: str | None
    system_instruction: str | None
    instruction_file_text: str | None
    max_bytes: int


# Text 003, 4.6.2

FROM_PATTERN = re.compile(r"\[FROM:[^\]]+\]", re.IGNORECASE | re.ASCII)
NEXT_PATTERN = re.compile(r"\[NEXT:[^\]]*\]", re.IGNORECASE | re.ASCII)
TEAM_TASK_PATTERN = re.compile(r"\[TEAM_TASK\][\s\S]*?(?=\[|\Z)", re.IGNORECASE | re.ASCII)


def strip_all_markers(message: str) -> str:
    result = message
    result = FROM_PATTERN.sub("", result)
    result = TEAM_TASK_PATTERN.sub("", result)
    result = NEXT_PATTERN.sub("", result)
    return cleanup_whitespace(result)


def cleanup_whitespace(text: str) -> str:
    lines = [trim(SPACES.sub(" ", line)) for line in text.split("\n")]
    return trim("\n".join(line for line in lines if len(line) > 0))


# Text 003, 4.6, 4.6.1 and 4.7


def get_context_for_agent(
    messages: list[Message],
    team_task: str | None,
    window_size: int,
    system_instruction: str | None,
    instruction_file_text: str | None,
    max_bytes: int,
) -> AssemblerInput:
    latest = messages[-1]
    all_except_last = messages[:-1]
    # slice(-0) is everything; decision 7
    context_messages = all_except_last[-window_size:] if window_size else []
    internal_context = [
        ContextMessage(
            from_=msg.speaker.role_name,
            to=format_addressees(msg.resolved_addressees),
            content=strip_all_markers(msg.content),
            message_id=msg.id,
        )
        for msg in context_messages
    ]
    return AssemblerInput(
        context_messages=deduplicate_context(internal_context, latest),
        current_message=strip_all_markers(latest.content),
        team_task=team_task,
        system_instruction=system_instruction,
        instruction_file_text=instruction_file_text,
        max_bytes=max_bytes,
    )


def format_addressees(addressees: list[str] | None) -> str:
    if not addressees:
        return "all"
    if len(addressees) == 1:
        return addressees[0]
    return ", ".join(addressees)


def deduplicate_context(context_messages: list[ContextMessage], current: Message) -> list[ContextMessage]:
    if current.speaker.type != "ai" or not context_messages:
        return context_messages
    last = context_messages[-1]
    if last.message_id == current.id:
        return context_messages[:-1]
    if last.from_ == current.speaker.role_name and last.content == strip_all_markers(current.content):
        return context_messages[:-1]
    return context_messages


# Text 003, 4.11 and 4.12


def normalize_agent_type(type_: str) -> str:
    mapping = {
        "claude": "claude-code",
        "claude-code": "claude-code",
        "codex": "openai-codex",
        "openai-codex": "openai-codex",
        "gemini": "google-gemini",
        "google-gemini": "google-gemini",
    }
    return mapping.get(type_.lower(), type_)


def assemble_prompt(agent_type: str, source: AssemblerInput) -> tuple[str, str | None]:
    """Return prompt and systemFlag. What is over the limit is cut in the order of the texts."""
    while True:
        prompt, flag = assemble(agent_type, source)
        excess = byte_length(prompt) + byte_length(flag or "") - source.max_bytes
        if excess <= 0:
            return prompt, flag
        if source.context_messages:
            source.context_messages = source.context_messages[1:]
            continue
        current = trim(source.current_message)
        kept = truncate_to_bytes(current, byte_length(current) - excess)
        if not kept:
            # Text 004: an error, if the least that is necessary does not fit
            raise ValueError("too large")
        # It is the last section in every layout.
        return prompt.removesuffix(current) + kept, flag


def assemble(agent_type: str, source: AssemblerInput) -> tuple[str, str | None]:
    match normalize_agent_type(agent_type):
        case "claude-code":
            return claude(source)
        case "openai-codex":
            return codex(source)
        case "google-gemini":
            return gemini(source)
        case _:
            return plain_text(source)


def truncate_to_bytes(text: str, max_bytes: int) -> str:
    low, high = 0, len(text)
    while low < high:
        mid = (low + high + 1) // 2
        if byte_length(text[:mid]) <= max_bytes:
            low = mid
        else:
            high = mid - 1
    return text[:low]


def build_system(source: AssemblerInput) -> str | None:
    """buildSystemFlag, buildInstructionsBody and buildSystemBody, which are the same."""
    parts = []
    if trim(source.system_instruction):
        parts.append(trim(source.system_instruction))
    if trim(source.instruction_file_text):
        parts.append(trim(source.instruction_file_text))
    return "\n\n".join(parts) if parts else None


# Text 000, 4.3


def claude(source: AssemblerInput) -> tuple[str, str | None]:
    sections = []
    if trim(source.team_task):
        sections.append(f"[TEAM_TASK]\n{trim(source.team_task)}")
    if len(source.context_messages) > 0:
        lines = [f"- {msg.from_} -> {msg.to}: {msg.content}" for msg in source.context_messages]
        sections.append("[CONTEXT]\n" + "\n".join(lines))
    if trim(source.current_message):
        sections.append(f"[MESSAGE]\n{trim(source.current_message)}")
    return "\n\n".join(sections), build_system(source)


# The tables of texts 000 (10) and 002 (11.1, 11.2), and text 004


def codex(source: AssemblerInput) -> tuple[str, str | None]:
    sections = []
    system = build_system(source)
    if system:
        sections.append(f"[SYSTEM]\n{system}")
    prompt, _ = claude(source)
    if prompt:
        sections.append(prompt)
    return "\n\n".join(sections), None


# Text 002, 4.3


def gemini(source: AssemblerInput) -> tuple[str, str | None]:
    sections = []
    instructions = build_system(source)
    if instructions:
        sections.append(f"Instructions:\n{instructions}")
    if trim(source.team_task):
        sections.append(f"Team Task:\n{trim(source.team_task)}")
    if len(source.context_messages) > 0:
        lines = [f"- {msg.from_}: {msg.content}" for msg in source.context_messages]
        sections.append("Conversation so far:\n" + "\n".join(lines))
    if trim(source.current_message):
        sections.append(f"Your task:\n{trim(source.current_message)}")
    return "\n\n".join(sections), None


# Text 001, 4.3


def plain_text(source: AssemblerInput) -> tuple[str, str | None]:
    parts = []
    system = build_system(source)
    if system:
        parts.append(system)
    if trim(source.team_task):
        parts.append(trim(source.team_task))
    if len(source.context_messages) > 0:
        parts.append("\n".join(f"{msg.from_}: {msg.content}" for msg in source.context_messages))
    if trim(source.current_message):
        parts.append(trim(source.current_message))
    return "\n\n".join(parts), None
