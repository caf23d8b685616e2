"""What a program may do with a path, and what is told to the system for that."""

import pytest

from bullpen.permissions import Permission
from bullpen.sandbox.bubblewrap import arguments
from bullpen.sandbox.profile import Access, Layout, Place, Profile, profile_for
from bullpen.sandbox.refusals import refusal, refused_paths
from bullpen.sandbox.seatbelt import profile_text

LAYOUT = Layout(
    folder="/home/kim/shop",
    home="/home/kim",
    temporary=("/tmp",),
    private="/tmp/bullpen-1/tmp",
    shown=(("/tmp/bullpen-2", "/tmp/bullpen-2"),),
    repository=("/home/kim/shop/.git",),
    written=("/home/kim/.claude", "/home/kim/.cache/uv"),
    read_only=("/home/kim/shop/.git/hooks", "/home/kim/shop/team.toml", "/home/kim/.claude/settings.json"),
    hidden_folders=("/run", "/home/kim/.local/share/bullpen", "/home/kim/.codex"),
    hidden_files=("/home/kim/.netrc",),
    placeholders=("/home/kim/shop/.qwen",),
)


@pytest.mark.parametrize(
    ("path", "read_only", "edit"),
    [
        ("/etc/passwd", "read", "read"),
        ("/home/kim/shop", "read", "write"),
        ("/home/kim/shop/src/main.py", "read", "write"),
        ("/home/kim/shopping", "read", "read"),
        ("/home/kim/shop/.git/index", "read", "write"),
        ("/home/kim/shop/.git/hooks/pre-commit", "read", "read"),
        ("/home/kim/shop/team.toml", "read", "read"),
        ("/home/kim/shop/.qwen/settings.json", "read", "nothing"),
        ("/home/kim/.claude/projects/a.jsonl", "write", "write"),
        ("/home/kim/.claude/settings.json", "read", "read"),
        ("/home/kim/.cache/uv/x", "write", "write"),
        ("/home/kim/.codex/auth.json", "nothing", "nothing"),
        ("/home/kim/.netrc", "nothing", "nothing"),
        ("/home/kim/.local/share/bullpen/conversations.db", "nothing", "nothing"),
        ("/run/docker.sock", "nothing", "nothing"),
        ("/tmp/ssh-1/agent.1", "instead", "instead"),
        ("/tmp/bullpen-2/tools", "read", "read"),
    ],
)
def test_what_may_be_done_with_a_path(path: str, read_only: Access, edit: Access) -> None:
    permissions: tuple[Permission, ...] = ("read-only", "edit", "ask")

    found = [profile_for(LAYOUT, permission).access_to(path) for permission in permissions]

    assert found == [read_only, edit, edit]


def test_full_permissions_are_not_held() -> None:
    with pytest.raises(ValueError, match="not held"):
        profile_for(LAYOUT, "full")


def test_a_persons_own_word_wins_over_what_is_usually_hidden() -> None:
    layout = Layout(folder="/f", home="/h", written=("/h/.ssh",), hidden_folders=("/h/.ssh",))

    assert profile_for(layout, "read-only").access_to("/h/.ssh/known_hosts") == "write"


def test_bubblewrap_is_told_of_what_is_above_first() -> None:
    layout = Layout(
        folder="/f", home="/h", hidden_files=("/h/.netrc",), hidden_folders=("/run",), read_only=("/f/.git",)
    )

    said = arguments(profile_for(layout, "edit", network=False), "/usr/bin/bwrap", is_root=True)

    assert said == (
        *("/usr/bin/bwrap", "--unshare-user", "--unshare-pid", "--unshare-ipc", "--die-with-parent", "--new-session"),
        *("--cap-drop", "ALL", "--cap-add", "CAP_SETFCAP", "--unshare-net"),
        *("--ro-bind", "/", "/", "--dev", "/dev", "--proc", "/proc"),
        *("--ro-bind-try", "/proc/sys", "/proc/sys", "--ro-bind-try", "/proc/sysrq-trigger", "/proc/sysrq-trigger"),
        *("--bind", "/f", "/f", "--ro-bind", "/f/.git", "/f/.git"),
        *("--ro-bind", "/dev/null", "/h/.netrc", "--perms", "0555", "--tmpfs", "/run"),
        *("--chdir", "/f", "--"),
    )


def test_seatbelt_has_the_last_word_for_what_is_below() -> None:
    layout = Layout(folder='/f "x"', home="/h", hidden_folders=("/h/.codex",), read_only=('/f "x"/.git',))

    assert profile_text(profile_for(layout, "edit")).splitlines()[-4:] == [
        '(allow file-read* file-write* (subpath "/f \\"x\\""))',
        '(allow file-read* (subpath "/f \\"x\\"/.git"))',
        '(deny file-write* (subpath "/f \\"x\\"/.git"))',
        '(deny file-read* file-write* (subpath "/h/.codex"))',
    ]


PROFILE = Profile(
    folder="/f",
    permission="edit",
    places=(Place(path="/f", access="write"), Place(path="/f/.vscode", access="read")),
)


@pytest.mark.parametrize(
    ("output", "paths"),
    [
        ("bash: line 1: .vscode/tasks.json: Read-only file system", ("/f/.vscode/tasks.json",)),
        ("touch: cannot touch '/root/x': Read-only file system", ("/root/x",)),
        ("OSError: [Errno 30] Read-only file system: '/h/.cache/a'", ("/h/.cache/a",)),
        ("Error: EROFS: read-only file system, open '/h/.npm/x'", ("/h/.npm/x",)),
        ("a.txt: Read-only file system", ()),
        ("the words read-only file system alone", ()),
        ("nothing of the kind", ()),
    ],
)
def test_what_was_refused_is_read_from_a_programs_own_words(output: str, paths: tuple[str, ...]) -> None:
    assert refused_paths(output, PROFILE) == paths


def test_the_line_that_allows_it_is_said() -> None:
    assert refusal("/h/.npm/x", PROFILE).endswith('writable = ["/h/.npm"]')
    assert refusal("/f/.vscode/a/b", PROFILE).endswith('writable = [".vscode"]')
