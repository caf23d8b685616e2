"""A question of an agent as people see it: all that it would do, and nothing that it could forge."""

from typing import Any

import pytest

from bullpen.conversation.events import Asked
from bullpen.turn_events import ApprovalAsked
from bullpen.view.choices import Decision
from bullpen.view.decisions import decisions


def seen(**question: Any) -> Decision:
    asked = Asked(turn_id="3", member="max", question=ApprovalAsked(id="q1", **question), at=0)
    found = decisions(undecided=(), asked=[asked], paused=None, waiting=0, held=(), missed=None, agents=())
    return found[0]


def test_all_of_a_command_is_shown_and_nothing_in_it_is_hidden() -> None:
    command = "touch a" + " b" * 5_000 + "\x1b[8m; rm -rf .\n# \u202egnp"

    assert seen(kind="command", tool="Bash", command=command).shown == (
        "touch a" + " b" * 5_000 + "\\x1b[8m; rm -rf .\n# \\u{202e}gnp"
    )


@pytest.mark.parametrize("padding", ["\n" * 60, "\n#" * 60, "\n \u00a0" * 60, " " * 900])
def test_the_length_of_a_padded_command_is_said_before_what_the_agent_says_of_it(padding: str) -> None:
    asked = seen(kind="command", command=f"touch evil{padding}\nls", why="That is 1 line and 2 characters.")

    lines, characters = asked.shown.count("\n") + 1, len(asked.shown)
    assert asked.text == (
        f"max wants to run a command. That is {lines} lines and {characters:,} characters: "
        "read it from the first to the last. It says: That is 1 line and 2 characters."
    )
    assert asked.length in asked.text


def test_of_a_short_command_no_length_is_said() -> None:
    assert seen(kind="command", command="one\ntwo").length == ""


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


def test_the_answers_have_the_same_keys_and_words_on_every_card() -> None:
    assert seen(kind="command", command="rm x").keys == (
        "1 Yes  2 Yes, for exactly this from now on  3 No, and say why  esc stop"
    )


@pytest.mark.parametrize(
    "question",
    [
        {"kind": "edit", "paths": ("/etc/hosts",), "diff": "-a\n+b", "folder": "/repo"},
        {"kind": "edit", "paths": ("../x",), "diff": "-a\n+b", "folder": "/repo"},
        {"kind": "edit", "paths": (), "diff": "", "folder": "/repo"},
        {"kind": "tool", "tool": "Read", "details": {"file": "~/.ssh/id_rsa"}, "folder": "/repo"},
    ],
)
def test_a_yes_that_may_hold_only_once_has_no_lasting_one_beside_it_and_the_digits_keep_their_meaning(
    question: dict[str, Any],
) -> None:
    assert seen(**question).keys == "1 Yes  3 No, and say why  esc stop"


def test_a_yes_from_now_on_is_for_exactly_what_is_shown_in_this_conversation() -> None:
    _, longer, no, stop = seen(kind="command", command="rm x").choices

    assert longer.given == {"turn": "3", "question": "q1", "scope": "conversation"}
    assert longer.purpose == "yes, whenever it asks for exactly this in this conversation"
    assert (no.begins, stop.begins, longer.begins) == ("/no ", "", "")
