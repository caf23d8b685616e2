"""From a CLI's words to a kind of failure, what to do next, and when a quota comes back."""

import pytest

from bullpen.agents.failures import COMMON_HINTS, ERRORS, classified, error_for, unreachable
from bullpen.agents.registry import agent_spec
from bullpen.errors import AgentFailed
from bullpen.turn_events import Failed, FailureKind


@pytest.mark.parametrize(
    ("agent", "message", "kind"),
    [
        ("claude", "Not logged in · Please run /login", "not_signed_in"),
        ("claude", 'API Error: 401 {"type":"error"}', "not_signed_in"),
        ("claude", "Claude AI usage limit reached|1794750000", "quota"),
        ("claude", "API Error: Request rejected (429) · scripted error", "quota"),
        ("claude", "API Error: 529 Overloaded", "overloaded"),
        ("claude", "API Error: 500 Internal server error", "overloaded"),
        ("claude", "Unable to connect to API (ConnectionRefused)", "overloaded"),
        ("claude", "Prompt is too long", "prompt_too_long"),
        ("claude", "piped stdin input exceeds 10MB", "prompt_too_long"),
        ("claude", "--dangerously-skip-permissions cannot be used with root/sudo privileges", "permission_refused"),
        ("claude", "API Error: 400 bad request", "crashed"),
        ("codex", "unexpected status 401 Unauthorized: scripted, url: http://x/v1/responses", "not_signed_in"),
        ("codex", "Missing environment variable: `FAKE_OPENAI_KEY`.", "not_signed_in"),
        ("codex", "exceeded retry limit, last status: 429 Too Many Requests", "quota"),
        ("codex", "You've hit your usage limit. Try again in 3 days 2 hours.", "quota"),
        ("codex", "We're currently experiencing high demand, which may cause temporary errors.", "overloaded"),
        ("codex", "unexpected status 529 <unknown status code>: x", "overloaded"),
        ("codex", "Input exceeds the maximum length of 1048576 characters (input_too_large)", "prompt_too_long"),
        ("codex", "context_length_exceeded: too long", "prompt_too_long"),
        ("codex", "stream disconnected before completion", "overloaded"),
        (
            "codex",
            "thread/resume failed: invalid paginated history lineage for 1: missing source rollout",
            "session_lost",
        ),
        ("copilot", "Error: No session, task, or name matched '1111'.", "session_lost"),
        ("gemini", '[API Error: {"error":{"code":401,"status":"UNAUTHENTICATED"}}]', "not_signed_in"),
        (
            "gemini",
            "[API Error: x]\nPlease wait and try again later. To increase your limits, request a quota increase",
            "quota",
        ),
        ("gemini", "[API Error: terminated]", "overloaded"),
        ("gemini", "When using Gemini API, you must specify the GEMINI_API_KEY environment variable.", "not_signed_in"),
        ("gemini", "Something nobody has seen before", "crashed"),
    ],
)
def test_the_kind_is_in_the_words(agent: str, message: str, kind: FailureKind) -> None:
    failure = classified(agent_spec(agent), Failed(kind="crashed", message=message, exit_code=1))

    assert failure.kind == kind
    assert failure.hint


@pytest.mark.parametrize(("exit_code", "kind"), [(41, "not_signed_in"), (53, "turn_limit"), (55, "permission_refused")])
def test_some_exit_codes_of_gemini_have_a_meaning(exit_code: int, kind: FailureKind) -> None:
    failure = classified(agent_spec("gemini"), Failed(kind="crashed", message="?", exit_code=exit_code))

    assert failure.kind == kind


def test_the_last_lines_of_stderr_count_when_the_message_says_nothing() -> None:
    failure = Failed(
        kind="crashed", message="It ended with exit code 1.", exit_code=1, stderr_tail="Error: Not logged in"
    )

    assert classified(agent_spec("codex"), failure).kind == "not_signed_in"


def test_the_message_counts_more_than_stderr() -> None:
    failure = Failed(kind="crashed", message="429 Too Many Requests", exit_code=1, stderr_tail="api key loaded")

    assert classified(agent_spec("codex"), failure).kind == "quota"


@pytest.mark.parametrize(
    ("message", "reset_at"),
    [
        ("Claude AI usage limit reached|1794750000", "2026-11-15T13:40:00+00:00"),
        ("You've hit your usage limit. Try again in 3 days 2 hours.", "3 days 2 hours"),
        ("You've hit your limit · resets 3pm (UTC)", "3pm (UTC)"),
        ("rate limit reached, please retry after 20s", "20s"),
        ("429 Too Many Requests", None),
    ],
)
def test_when_a_quota_comes_back(message: str, reset_at: str | None) -> None:
    failure = classified(agent_spec("claude"), Failed(kind="crashed", message=message, exit_code=1))

    assert (failure.kind, failure.reset_at) == ("quota", reset_at)


@pytest.mark.parametrize(
    ("reason", "kind"), [("Connection failed", "overloaded"), ("unexpected status 401 Unauthorized", "not_signed_in")]
)
def test_a_number_of_attempts_is_no_status(reason: str, kind: FailureKind) -> None:
    sentence = "It could not reach its server for 3 min 00 s (401 attempts)."

    failed = unreachable(agent_spec("codex"), Failed(kind="crashed", message=reason), sentence)

    assert (failed.kind, failed.message) == (kind, sentence)


def test_a_kind_that_is_certain_is_not_guessed_again() -> None:
    failure = classified(agent_spec("claude"), Failed(kind="timed_out", message="It wrote nothing: 429"))

    assert failure.kind == "timed_out"


def test_every_kind_has_words_and_an_error_but_cancelling_which_is_none() -> None:
    assert set(COMMON_HINTS) == set(ERRORS) | {"cancelled"}
    for kind in ERRORS:
        error = error_for(agent_spec("codex"), Failed(kind=kind, message="It broke.", hint="Do this."))
        assert isinstance(error, AgentFailed)
        assert str(error) == "openai-codex: It broke. Do this."
