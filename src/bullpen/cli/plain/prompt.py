"""A prompt before it is sent, for people: what an agent would be given, and what was left out."""

from collections.abc import Iterator

from bullpen.context.prompt import AssemblerOutput
from bullpen.exchange.formatting import counted


def prompt_lines(member: str, output: AssemblerOutput) -> Iterator[str]:
    """Yield the system text, the prompt and the report."""
    if output.system_flag:
        yield f"--- system text for {member}, beside the prompt"
        yield output.system_flag
    yield f"--- prompt for {member}"
    yield output.prompt
    report = output.report
    yield f"--- {report.total_bytes:,} of {report.max_bytes:,} bytes"
    for section, size in report.section_bytes.items():
        if size:
            yield f"{section.replace('_', ' '):<11}{size:>11,}"
    yield f"{counted(report.kept_messages, 'message')} of history" + (
        f", {counted(report.dropped_messages, 'older one')} did not fit" if report.dropped_messages else ""
    )
    for cut in report.remarks:
        yield f"! {cut}"
