"""A prompt before it is sent, for people: what an agent would be given, and what would be left out."""

from collections.abc import Iterator

from bullpen.view.explanation import Explanation
from bullpen.view.words import counted


def prompt_lines(explanation: Explanation) -> Iterator[str]:
    """Yield the system text, the prompt and its report."""
    member = explanation.member
    if explanation.system:
        yield f"--- system text for {member}, given with the prompt"
        yield explanation.system
    yield f"--- prompt for {member}"
    yield explanation.prompt or ""
    yield f"--- {explanation.total_bytes:,} of {explanation.max_bytes:,} bytes"
    for section, size in explanation.sections:
        yield f"{section:<11}{size:>11,}"
    dropped = sum(seen.fate == "dropped" for seen in explanation.context)
    yield f"{counted(len(explanation.context) - dropped, 'message')} of history" + (
        f", {counted(dropped, 'older one')} did not fit" if dropped else ""
    )
    for remark in explanation.remarks:
        yield f"! {remark}"
