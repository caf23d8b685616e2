"""Classifying failures: from a CLI's output and exit code to a kind of failure and a hint."""

import re
from collections.abc import Mapping
from datetime import UTC, datetime

from msgspec import Struct
from msgspec.structs import replace

from bullpen import errors
from bullpen.agents.spec import AgentSpec
from bullpen.turn_events import Failed, FailureKind

LIMITED = r"\b429\b|rate.?limit|quota|usage limit|hit your .{0,20}limit|too many requests|resource.?exhausted"
BUSY = r"\b(500|502|503|504|529)\b|overloaded|high demand|unavailable|internal server error"

# In this order: a message about a token limit may also mention a rate.
COMMON_FAILURES: tuple[tuple[FailureKind, str], ...] = (
    ("prompt_too_long", r"prompt is too long|context.?(length|window)|input.?too.?(large|long)|too many tokens"),
    (
        "not_signed_in",
        r"\b(401|403)\b|not logged in|log ?in again|unauthori[sz]ed|unauthenticated|authentication|api.?key|forbidden",
    ),
    ("quota", LIMITED),
    ("overloaded", BUSY),
    ("overloaded", r"connection (refused|error|reset)|fetch failed|unable to connect|ECONN|ENOTFOUND|ETIMEDOUT"),
    ("overloaded", r"stream disconnected|API Error: terminated"),
    ("turn_limit", r"max(imum)?.?(session.?)?turns|turn limit"),
)

# Standard error contains many numbers and words that mean something else, so only unambiguous ones count there.
CERTAIN_FAILURES: tuple[tuple[FailureKind, str], ...] = (
    ("prompt_too_long", r"prompt is too long|context_length_exceeded|input_too_large"),
    ("not_signed_in", r"not logged in|UNAUTHENTICATED|(status|code)\W{1,4}(401|403)\b"),
    ("quota", r"rate limit (reached|exceeded)|RESOURCE_EXHAUSTED|(status|code)\W{1,4}429\b"),
    ("overloaded", r"overloaded_error|ECONNREFUSED|ENOTFOUND|(status|code)\W{1,4}(500|502|503|529)\b"),
)

COMMON_HINTS: Mapping[FailureKind, str] = {
    "not_installed": "Install it, or check your PATH.",
    "not_signed_in": "Sign in with the CLI itself.",
    "quota": "Wait until the quota resets, or give the turn to another member.",
    "overloaded": "Check your connection and try again in a minute.",
    "prompt_too_long": "Set a smaller max_bytes or window for this member.",
    "turn_limit": "Ask for a smaller step, or raise the limit in the CLI's own settings.",
    "permission_refused": "Choose other permissions for this member.",
    "session_lost": "Retry: the next turn begins a new session with the conversation so far.",
    "crashed": "Check it with `bullpen doctor --live`.",
    "timed_out": "Retry, or give this member more time.",
    "cancelled": "",
    "protocol_broken": "`bullpen doctor` shows whether this version has been tested with bullpen.",
    "worker_lost": "Files may have been changed. Look at them before you retry.",
}

# The doctor knows nothing about a program that is not a known CLI.
COMMAND_HINTS: Mapping[FailureKind, str] = {
    **COMMON_HINTS,
    "crashed": "`bullpen explain last --stream` shows what it printed.",
    "protocol_broken": "Try it by hand with what it was given: `bullpen explain last --prompt`.",
}

ERRORS: Mapping[FailureKind, type[errors.AgentFailed]] = {
    "not_installed": errors.AgentNotInstalled,
    "not_signed_in": errors.AgentNotSignedIn,
    "quota": errors.QuotaExceeded,
    "overloaded": errors.AgentOverloaded,
    "prompt_too_long": errors.PromptTooLong,
    "turn_limit": errors.TurnLimitReached,
    "permission_refused": errors.PermissionRefused,
    "session_lost": errors.SessionLost,
    "crashed": errors.AgentCrashed,
    "timed_out": errors.AgentTimedOut,
    "protocol_broken": errors.ProtocolBroken,
    "worker_lost": errors.WorkerLost,
}

_EPOCH_RESET = re.compile(r"usage limit reached\|(\d{9,11})")
_RESET = re.compile(
    r"(?:resets?(?: at| in| on)?|(?:try|retry) (?:again )?(?:at|in|after)|retry.?after:?) "
    r"((?:[^.\n·]|\.(?=\d)){1,60})",
    re.IGNORECASE,
)


def classified(spec: AgentSpec, failure: Failed) -> Failed:
    """Return the failure with its kind, its hint, and, if the text says so, when a quota resets."""
    kind = failure.kind
    if kind == "crashed":
        kind = _kind(spec, failure) or kind
    common = COMMAND_HINTS if spec.stream == "text" else COMMON_HINTS
    hint = failure.hint or spec.hints.get(kind) or common[kind]
    said = failure.reset_at or _reset_at(failure.message) or _reset_at(failure.stderr_tail)
    reset_at = said if kind == "quota" else None
    return replace(failure, kind=kind, hint=hint, reset_at=reset_at)


class ServerTrouble(Struct, frozen=True):
    """Why a CLI tries again, in words: while it does; and before the time after which it was stopped."""

    now: str
    before: str


RETRIES: tuple[tuple[str, ServerTrouble], ...] = (
    (LIMITED, ServerTrouble("its server limits requests", "Its server limited requests for")),
    (BUSY, ServerTrouble("its server is busy", "Its server was busy for")),
    ("", ServerTrouble("cannot reach its server", "It could not reach its server for")),
)


def server_trouble(reason: str) -> ServerTrouble:
    """Return why a CLI tries again, from the reason that it gives: a server that answers can be reached."""
    return next(trouble for pattern, trouble in RETRIES if re.search(pattern, reason, re.IGNORECASE))


def unreachable(spec: AgentSpec, failure: Failed, sentence: str) -> Failed:
    """Return the failure of a CLI that its server did not serve, told in a sentence.

    A refused login or a quota may be why: the failure's own message says so, not the numbers in the sentence.
    """
    return replace(failure, kind=_kind(spec, failure) or "overloaded", message=sentence)


def error_for(spec: AgentSpec, failure: Failed) -> errors.AgentFailed:
    """Return the exception for a failure."""
    return ERRORS.get(failure.kind, errors.AgentFailed)(spec.name, failure)


def _kind(spec: AgentSpec, failure: Failed) -> FailureKind | None:
    if failure.exit_code is not None and failure.exit_code in spec.exit_codes:
        return spec.exit_codes[failure.exit_code]
    # The CLI's final message takes precedence over what its libraries print.
    # The standard error of a program that is not a known CLI may mean anything.
    stderr_failures = () if spec.stream == "text" else spec.failures + CERTAIN_FAILURES
    for text, failures in ((failure.message, spec.failures + COMMON_FAILURES), (failure.stderr_tail, stderr_failures)):
        for kind, pattern in failures:
            if re.search(pattern, text, re.IGNORECASE):
                return kind
    return None


def _reset_at(text: str) -> str | None:
    if epoch := _EPOCH_RESET.search(text):
        return datetime.fromtimestamp(int(epoch[1]), UTC).isoformat()
    reset = _RESET.search(text)
    return reset[1].strip() if reset else None
