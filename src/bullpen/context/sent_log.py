"""The log record that explains a prompt."""

import logging

from bullpen.context.prompt import AssemblerOutput

logger = logging.getLogger(__name__)


def log_sent(output: AssemblerOutput) -> None:
    """Log what is sent and what was cut, at debug level: as a line, and as data in `record.sent`."""
    if not logger.isEnabledFor(logging.DEBUG):
        return
    report = output.report
    sent = {
        "agent_type": report.agent_type,
        "total_bytes": report.total_bytes,
        "max_bytes": report.max_bytes,
        "section_bytes": report.section_bytes,
        "kept_ids": report.kept_ids,
        "dropped_messages": report.dropped_messages,
        "message_bytes_cut": report.message_bytes_cut,
        "instruction_bytes_cut": report.instruction_bytes_cut,
        "prompt": output.prompt,
        "system_flag": output.system_flag,
    }
    logger.debug(
        "[Debug][Send] agent=%s bytes=%d of %d cuts=%s\nprompt:\n%s%s",
        report.agent_type,
        report.total_bytes,
        report.max_bytes,
        "; ".join(report.remarks) or "none",
        output.prompt,
        "" if output.system_flag is None else f"\nsystemFlag:\n{output.system_flag}",
        extra={"sent": sent},
    )
