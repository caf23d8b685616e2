"""docs/specification.md: every name of the texts is on the page, and everything the page names is there."""

import inspect
import re
from importlib import import_module
from pathlib import Path
from typing import Any, NamedTuple

import msgspec
import pytest

ROOT = Path(__file__).parents[3]
PAGE = ROOT / "docs" / "specification.md"

CODE = re.compile(r"`([^`]+)`")
NOWHERE = "—"

# The types, classes, functions, methods, fields, options and constants in the code of the texts, and the components
# that they mention. Local variables, parameters and what JavaScript brings along are left out.
NAMES_IN_THE_TEXTS = {
    "the assemblers": """
        AgentType AssemblerInput AssemblerOutput IContextAssembler PromptContextMessage
        ClaudeContextAssembler GeminiContextAssembler PlainTextAssembler
        applyByteBudget assemble buildInstructionsBody buildSystemBody buildSystemFlag contextTrimmer getAgentType
        trimContextToFit trimContextToFitGemini trimContextToFitPlainText
        contextMessages currentMessage instructionFileText maxBytes prompt systemFlag systemInstruction teamTask
        from to content AgentManager AgentConfig JsonlMessageFormatter stripAnsi type role
    """,
    "ContextManager": """
        ContextManager ContextManagerOptions ContextSnapshot ConversationCoordinator ConversationMessage
        CodexContextAssembler IContextProvider InternalContextMessage Member MessageRouter SessionUtils
        DEFAULT_CONTEXT_WINDOW_SIZE DEFAULT_MAX_BYTES MAX_TEAM_TASK_BYTES
        FROM_PATTERN NEXT_PATTERN TEAM_TASK_PATTERN
        addMessage assemblePrompt calculateNextMessageId cleanupWhitespace clear constructor deduplicateContext
        exportSnapshot formatAddressees getContextForAgent getLatestMessage getMessages getTeamTask importSnapshot
        normalizeAgentType notifyUI routeToNext send sendMessage sendToAgent setTeamTask stripAllMarkers
        stripAllMarkersForContext truncateToBytes
        agentId agentManager agentType assemblers contextManager contextWindowSize id maxMessages messageId messages
        name nextMessageId onMessageAdded onTeamTaskChanged options resolvedAddressees roleId roleName routing speaker
        timestamp version windowSizeOverride
    """,
    "the prompt builder": """
        Adapter ConversationStarter PromptBuilder PromptInput PromptOutput
        buildPrompt prepareMessage message systemInstructionText DEBUG Debug Send
    """,
}


class Row(NamedTuple):
    """One line of the page's tables."""

    specified: str
    here: str
    notes: str


def rows() -> list[Row]:
    lines = [line for line in PAGE.read_text(encoding="utf-8").splitlines() if line.startswith("| ")]
    cells = [[cell.strip() for cell in line.strip("|").split(" | ")] for line in lines]
    return [Row(*row) for row in cells if row[0] != "in the specification"]


def names_here() -> list[str]:
    return sorted({name for row in rows() for name in CODE.findall(row.here)})


def value_of(dotted: str) -> Any:
    """Return what a dotted name means: a module, or an attribute of something in one."""
    parts = dotted.split(".")
    for length in range(len(parts), 0, -1):
        try:
            value: Any = import_module(".".join(parts[:length]))
        except ModuleNotFoundError:
            continue
        for name in parts[length:]:
            value = attribute(value, name)
        return value
    raise ModuleNotFoundError(dotted)


def attribute(owner: Any, name: str) -> Any:
    """Return an attribute; a field that instances have counts as one of their class."""
    if isinstance(owner, type) and issubclass(owner, msgspec.Struct):
        fields = {field.name: field for field in msgspec.structs.fields(owner)}
        if name in fields:
            return fields[name]
    annotations = inspect.get_annotations(owner) if isinstance(owner, type) else {}
    return annotations[name] if name in annotations else getattr(owner, name)


def test_every_line_has_three_cells_and_leads_somewhere_or_says_why_not() -> None:
    assert [row for row in rows() if not CODE.search(row.here) and (row.here, bool(row.notes)) != (NOWHERE, True)] == []


def test_every_name_on_the_page_is_there() -> None:
    for name in names_here():
        if "/" in name:
            assert (ROOT / name).exists(), name
            continue
        dotted, parameter = re.fullmatch(r"([\w.]+)(?:\((\w+)=\))?", name).groups()  # type: ignore[union-attr]

        value = value_of(dotted)

        assert parameter is None or parameter in inspect.signature(value).parameters, name


@pytest.mark.parametrize("text", NAMES_IN_THE_TEXTS)
def test_every_name_of_a_text_is_on_the_page(text: str) -> None:
    on_the_page = {word for row in rows() for code in CODE.findall(row.specified) for word in re.findall(r"\w+", code)}

    assert sorted(set(NAMES_IN_THE_TEXTS[text].split()) - on_the_page) == []
