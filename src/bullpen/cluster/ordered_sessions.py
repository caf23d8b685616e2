"""What an order says of the member's session, and what its owner notes, so that any node can end the turn."""

import logging

import msgspec
from msgspec.structs import replace

from bullpen.cluster.orders import Adopted, SessionOrder, Work
from bullpen.context.prompt import AssemblerOutput
from bullpen.conversation.prepared_turn import PreparedTurn
from bullpen.text.clean import clean_text, one_line

logger = logging.getLogger(__name__)

MOST_CHARACTERS = 500
"""Of a reason that a worker gives."""


def session_order(prepared: PreparedTurn) -> SessionOrder | None:
    """Return in which session a turn is to run; None if the agent has no memory of its own."""
    plan, fresh = prepared.plan, prepared.fresh
    use = prepared.output.report.session
    if plan is None or use is None or fresh is None or fresh.plan is None:
        return None
    is_other = fresh.output.prompt != prepared.output.prompt or fresh.output.system_flag != prepared.output.system_flag
    return SessionOrder(
        use=use,
        wanted=plan.wanted,
        worker=plan.left.memory.worker if plan.left else "",
        fresh=fresh.plan.use,
        prompt=fresh.output.prompt if is_other else None,
        system=fresh.output.system_flag if is_other else None,
    )


def notes_of(prepared: PreparedTurn) -> bytes:
    """Return what to note of a turn, except for what its order has in it."""
    if prepared.fresh is None:
        return b""
    fresh = replace(prepared.fresh, output=_without_text(prepared.fresh.output))
    return msgspec.msgpack.encode(replace(prepared, output=_without_text(prepared.output), fresh=fresh))


def prepared_in(order: Adopted) -> PreparedTurn:
    """Return what an agent was given in a turn that another owner has ordered.

    If that cannot be read, it may be of another version: then the turn leaves no memory, and the next one is rebuilt.
    """
    try:
        work = msgspec.msgpack.decode(order.packed, type=Work)
        given = AssemblerOutput(prompt=work.prompt, system_flag=work.system)
        if work.session is None:
            return PreparedTurn(output=given)
        prepared = msgspec.msgpack.decode(order.notes, type=PreparedTurn)
    except msgspec.MsgspecError as error:
        logger.warning("notes of another owner not read error=%s", error)
        return PreparedTurn(output=AssemblerOutput(prompt=""))
    prepared = replace(prepared, output=_with_text(prepared.output, given))
    if prepared.fresh is None:
        return prepared
    if work.session.prompt is not None:
        given = AssemblerOutput(prompt=work.session.prompt, system_flag=work.session.system)
    return replace(prepared, fresh=replace(prepared.fresh, output=_with_text(prepared.fresh.output, given)))


def told_reason(text: str) -> str:
    """Return why a worker began a new session, as it is shown: one line that is not too long."""
    return one_line(clean_text(text)).strip()[:MOST_CHARACTERS] or "its worker does not say why"


def _without_text(output: AssemblerOutput) -> AssemblerOutput:
    return replace(output, prompt="", system_flag=None)


def _with_text(output: AssemblerOutput, text: AssemblerOutput) -> AssemblerOutput:
    return replace(output, prompt=text.prompt, system_flag=text.system_flag)
