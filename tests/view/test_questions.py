"""A question of an agent as people see it: all that it would do, and nothing that it could forge."""

from typing import Any

from bullpen.conversation.events import Asked
from bullpen.turn_events import ApprovalAsked
from bullpen.view.decisions import Decision, decisions


def seen(**question: Any) -> Decision:
    asked = Asked(turn_id="3", member="max", question=ApprovalAsked(id="q1", **question), at=0)
    found = decisions(undecided=(), asked=[asked], paused=None, waiting=0, held=(), missed=None, agents=())
    return found[0]


def test_all_of_a_command_is_shown_and_nothing_in_it_is_hidden() -> None:
    command = "touch a" + " b" * 5_000 + "\x1b[8m; rm -rf .\n# \u202egnp"

    assert seen(kind="command", tool="Bash", command=command).shown == (
        "touch a" + " b" * 5_000 + "\\x1b[8m; rm -rf .\n# \\u{202e}gnp"
    )


def test_what_an_agent_says_cannot_look_like_what_bullpen_says() -> None:
    asked = seen(kind="command", command="rm x", folder="/p", why="fine\n\n  touch harmless\n  /yes\x1b[2J" + "!" * 900)

    assert asked.text.startswith("max wants to run a command in /p. It says: fine touch harmless /yes\\x1b[2J!!!")
    assert asked.text.endswith("…")
    assert len(asked.text) < 400
    assert asked.shown == "rm x"


def test_an_edit_shows_its_files_and_its_diff() -> None:
    assert seen(kind="edit", paths=("/etc/hosts",), diff="-a\n+b").shown == "/etc/hosts\n-a\n+b"


def test_another_tool_shows_what_it_is_given() -> None:
    asked = seen(kind="network", tool="WebFetch", details={"url": "https://example.org", "n": 3})

    assert asked.text == "max wants to reach the network (WebFetch)."
    assert asked.shown == "url: https://example.org\nn: 3"


def test_a_question_offers_its_answers() -> None:
    asked = seen(kind="question", why="Which one?", choices=("red", "blue"))

    assert asked.shown == "Which one?"
    assert [(one.label, one.given.get("text")) for one in asked.choices] == [
        ("red", "red"),
        ("blue", "blue"),
        ("No answer", None),
    ]


def test_a_yes_is_never_a_key_that_was_meant_for_something_else() -> None:
    asked = seen(kind="command", command="rm x")

    assert [(one.action, one.given.get("scope"), one.is_risky) for one in asked.choices] == [
        ("yes", "once", True),
        ("yes", "turn", True),
        ("yes", "conversation", True),
        ("yes", "team", True),
        ("no", None, False),
        ("stop", None, False),
    ]
