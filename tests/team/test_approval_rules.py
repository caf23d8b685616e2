"""What rules allow and deny, and that no shell can make more of what is allowed."""

import subprocess
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from bullpen.team.approval_rules import allowing, denying, is_like, narrowed
from bullpen.text.plain_commands import is_rule
from bullpen.turn_events import ApprovalAsked


def test_no_rule_allows_a_command_in_another_folder() -> None:
    asked = ApprovalAsked(id="1", kind="command", tool="shell", command="git diff", elsewhere=True)

    assert allowing(["git diff*", "git *"], asked) == ""
    assert denying(["git diff"], asked) == "git diff"


def command(text: str) -> ApprovalAsked:
    return ApprovalAsked(id="1", kind="command", tool="Bash", command=text)


def tool(name: str) -> ApprovalAsked:
    return ApprovalAsked(id="1", kind="tool", tool=name)


@pytest.mark.parametrize("text", ["pytest", "git diff*", "npm run test:*", "WebFetch", "mcp__github__*", "make -C x"])
def test_a_rule(text: str) -> None:
    assert is_rule(text)


@pytest.mark.parametrize("text", ["", "a; b", "a && b", "$(x)", "a*b", "-x", "a 'b'", "**", "a\nb", "a | b"])
def test_not_a_rule(text: str) -> None:
    assert not is_rule(text)


@pytest.mark.parametrize(
    ("rule", "text"),
    [
        ("pytest", "pytest"),
        ("pytest", "pytest -q tests/test_x.py"),
        ("pytest", "pytest -k 'a or b'"),
        ("pytest", "/bin/bash -lc 'pytest -q'"),
        ("pytest", "  pytest   -q "),
        ("npm test", "npm test -- --watch=false"),
        ("git diff*", "git diff"),
        ("git diff*", "git diff --stat HEAD"),
        ("git diff*", "git --no-pager diff"),
        ("npm run test:*", "npm run test:unit"),
        ("git *", "git push"),
        ("git *", "git"),
    ],
)
def test_allowed(rule: str, text: str) -> None:
    assert allowing([rule], command(text)) == rule


@pytest.mark.parametrize(
    ("rule", "text"),
    [
        ("pytest", "pytests"),
        ("pytest", "pytest; rm -rf ."),
        ("pytest", "pytest && touch x"),
        ("pytest", "pytest | tee x"),
        ("pytest", "pytest > x"),
        ("pytest", "pytest $(touch x)"),
        ("pytest", "pytest `touch x`"),
        ("pytest", 'pytest "$(touch x)"'),
        ("pytest", "pytest\ntouch x"),
        ("pytest", "pytest \\\n; touch x"),
        ("pytest", "/bin/bash -lc 'pytest; touch x'"),
        ("pytest", "/bin/bash -lc pytest; touch x"),
        ("pytest", "/bin/bash -lc 'pytest' '$(touch x)'"),
        ("pytest", "/bin/bash -lc 'pytest'\"$(touch x)\""),
        ("pytest", "bash -c pytest touch"),
        ("pytest", "./bash -c pytest"),
        ("pytest", "/home/dev/project/bash -lc pytest"),
        ("pytest", "/bash -lc pytest"),
        ("pytest", "FOO=1 pytest"),
        ("pytest", "./pytest"),
        ("pytest", "echo pytest"),
        ("pytest", "pytest 'open"),
        ("pytest", ""),
        ("git diff*", "git"),
        ("git diff*", "git push"),
        ("git diff*", "git difftool"),
        ("pytest*", "pytest-watch"),
        ("npm test", "npm run test"),
    ],
)
def test_not_allowed(rule: str, text: str) -> None:
    assert allowing([rule], command(text)) == ""


@pytest.mark.parametrize(
    "text",
    [
        "git push",
        "git push origin main",
        "git add . && git push",
        "sudo git push",
        "/usr/bin/git push",
        "bash -lc 'git add .; git push'",
        "./bash -lc 'git push'",
        "true | (git push)",
        "echo $(git push)",
        "g'i't push",
        'git "push"',
        "git pu\\sh",
        "git push 'unfinished",
        "git -C . push",
        "git --no-pager push",
        "git -c a=b push",
        "git -c pushed=1 push",
        "git -C pushed push",
        "git --git-dir x --work-tree=y push",
        "/usr/bin/git -C . push",
    ],
)
def test_denied(text: str) -> None:
    assert denying(["git push"], command(text)) == "git push"


def test_not_denied() -> None:
    assert denying(["git push"], command("git pull")) == ""
    assert denying(["git push"], command("git log --grep=push")) == ""


def test_a_very_long_command_is_denied_or_asked() -> None:
    long = "pytest " + "x" * 20_000

    assert allowing(["pytest"], command(long)) == ""
    assert denying(["git push"], command(long)) == ""
    assert denying(["git push"], command(f"bash -lc 'git push {long}'")) == "git push"


def test_tools() -> None:
    assert allowing(["WebFetch"], tool("WebFetch")) == "WebFetch"
    assert allowing(["mcp__github__*"], tool("mcp__github__get_issue")) == "mcp__github__*"
    assert allowing(["mcp__github__*"], tool("mcp__gitlab__get_issue")) == ""
    assert denying(["WebFetch"], tool("WebFetch")) == "WebFetch"
    # A command that is called like a tool is not that tool.
    assert allowing(["WebFetch"], command("touch WebFetch")) == ""


def test_a_command_is_denied_by_the_name_of_its_tool_too() -> None:
    assert denying(["Bash"], command("ls")) == "Bash"
    assert allowing(["Bash"], command("ls")) == ""


def test_where_it_may_be_any_of_several_tools_one_is_enough_to_deny_and_all_are_needed_to_allow() -> None:
    asked = tool("gh.delete_repo | gh.get_repo")

    assert denying(["gh.delete_repo"], asked) == "gh.delete_repo"
    assert allowing(["gh.get_repo"], asked) == ""
    assert allowing(["gh.*"], asked) == "gh.*"


@pytest.mark.parametrize(
    "details",
    [{"dangerouslyDisableSandbox": True}, {"leaves its sandbox": True}, {"stdin": "rm -rf /"}, {"host": "prod"}],
)
def test_no_rule_allows_a_command_with_more_to_it(details: dict[str, object]) -> None:
    asked = replace(command("pytest"), details=details)

    assert allowing(["pytest"], asked) == ""
    assert not is_like(asked, command("pytest"))
    assert allowing(["pytest"], replace(command("pytest"), details={"timeout": 1000})) == "pytest"
    assert (
        allowing(["file_change"], ApprovalAsked(id="1", kind="edit", tool="file_change", details={"grantRoot": "/"}))
        == ""
    )


def test_a_question_is_for_people() -> None:
    question = ApprovalAsked(id="1", kind="question", tool="AskUserQuestion", choices=("yes", "no"))

    assert allowing(["AskUserQuestion", "*"], question) == ""
    assert denying(["AskUserQuestion", "*"], question) == ""
    assert not is_like(question, question)


def test_only_the_same_is_alike() -> None:
    asked = ApprovalAsked(id="1", kind="command", tool="Bash", command="touch a", folder="/x", why="because")

    assert is_like(asked, ApprovalAsked(id="2", kind="command", tool="Bash", command="touch a", folder="/x", why="no"))
    assert not is_like(asked, ApprovalAsked(id="2", kind="command", tool="Bash", command="touch  a", folder="/x"))
    assert not is_like(asked, ApprovalAsked(id="2", kind="command", tool="Bash", command="touch a", folder="/y"))
    edit = ApprovalAsked(id="1", kind="edit", tool="Write", paths=("/x/a",), diff="+1", folder="/x")
    assert is_like(edit, replace(edit, id="2"))
    assert not is_like(edit, replace(edit, diff="+2"))
    assert not is_like(edit, ApprovalAsked(id="2", kind="edit", tool="Write", paths=("/x/b",), folder="/x"))
    read = ApprovalAsked(id="1", kind="tool", tool="mcp__fs__do", paths=("/x/a",), details={"action": "read"})
    assert not is_like(read, replace(read, details={"action": "delete"}))
    assert not is_like(replace(read, details={"force": 1}), replace(read, details={"force": True}))
    fetch = ApprovalAsked(id="1", kind="network", tool="WebFetch", details={"url": "https://a"})
    assert not is_like(fetch, ApprovalAsked(id="2", kind="network", tool="WebFetch", details={"url": "https://b"}))


PIECES = st.sampled_from(
    [*";&|<>$`(){}!\\'\" \n\t#~*?[]=", "true", "touch mark", "&&", "||", "$(", "-c", "bash", "-lc", "x", ">mark", "\r"]
)


@given(st.lists(PIECES, max_size=8))
def test_nothing_but_the_allowed_command_runs(tmp_path_factory: pytest.TempPathFactory, pieces: list[str]) -> None:
    """A real shell runs what is allowed: it cannot make the file that the other command would make."""
    text = "true" + "".join(pieces)
    if "\0" in text or not allowing(["true"], command(text)):
        return
    folder: Path = tmp_path_factory.mktemp("shell")

    subprocess.run(["/bin/sh", "-c", text], cwd=folder, capture_output=True, timeout=20, check=False)

    assert list(folder.iterdir()) == []


@pytest.mark.parametrize(
    ("rule", "words"),
    [
        (
            "git diff*",
            (
                "'git diff*' allowed any command that begins with 'git diff', also within a word, with any options; "
                "now it allows 'git diff' as whole words, without options or subcommands that run or write something"
            ),
        ),
        (
            "pytest",
            (
                "'pytest' allowed 'pytest', with any options; now it allows 'pytest' as whole words, without options "
                "or subcommands that run or write something"
            ),
        ),
        (
            "ruff che*",
            (
                "'ruff che*' allowed any command that begins with 'ruff che', also within a word, with any options; "
                "now it allows 'ruff che' as whole words"
            ),
        ),
        ("ruff check", ""),
        ("ruff *", ""),
        ("mcp__git*", ""),
        ("WebFetch", ""),
    ],
)
def test_a_rule_that_means_less_than_before_says_so(rule: str, words: str) -> None:
    assert narrowed(rule) == words
