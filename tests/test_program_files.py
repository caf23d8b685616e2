"""Which files make programs run, however their paths are written."""

import os
import sqlite3
from itertools import islice
from pathlib import Path

import pytest

from bullpen.agents.usual_edits import is_usual_edit
from bullpen.git_settings import git_targets
from bullpen.program_files import (
    BEGINNINGS,
    ENDINGS,
    FILES,
    FOLDERS,
    LAST_NAMES,
    ProgramFiles,
    is_program_name,
    scripts_of,
)
from bullpen.turn_events import ApprovalAsked

WANTED = (
    *(
        ".claude/settings.json",
        ".codex/config.toml",
        ".copilot/config.json",
        ".cursor/mcp.json",
        ".gemini/settings.json",
    ),
    *(
        ".idea/workspace.xml",
        ".opencode/plugin/x.js",
        ".pi/extensions/e.js",
        ".qwen/settings.json",
        ".vibe/config.toml",
    ),
    *(".vscode/tasks.json", ".git/config", ".git/hooks/pre-commit", ".github/workflows/x.yml", ".gitlab-ci.yml"),
    *(".husky/pre-commit", ".env", ".env.local", ".envrc", ".mcp.json", "opencode.json", "team.toml", "Jenkinsfile"),
    *(
        "githooks/pre-commit",
        "tools/post-checkout",
        "sitecustomize/__init__.py",
        "usercustomize.py",
        "mise/config.toml",
    ),
    *("sitecustomize.cpython-312-x86_64-linux-gnu.so", "usercustomize/__init__.py", ".mise/config.toml"),
    *(".config/mise/conf.d/x.toml", ".config/mise.toml", "mise.prod.local.toml", "mise/tasks/x", ".mise.toml"),
    *("lefthook-local.yml", "lefthook-local.toml", "lefthook.jsonc", ".lefthook/x", ".config/lefthook.yml"),
    *("husky.config.cjs", "lint-staged.config.mjs", ".lintstagedrc", "simple-git-hooks.json", "prek.toml"),
    *("captainhook.json", "grumphp.yml.dist", ".overcommit.yml", ".tool-versions", ".asdfrc", "flake.nix"),
    *("shell.nix", "default.nix", "devenv.local.nix", "devenv.yaml", "pyvenv.cfg", "python312._pth", "x.ipr"),
    *("azure-pipelines-nightly.yml", "Jenkinsfile.release", "netlify.toml", "vercel.json", "codebuff.json"),
    *("composer.json", "web/composer.json", "hk.pkl", "rust-toolchain", "rust-toolchain.toml"),
    *(".pre-commit-config.yaml", ".npmrc", "sitecustomize.py", "x.pth", "x.code-workspace", ".never-heard-of/x"),
)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A project with links of every kind, beside a folder that is not its own."""
    folder = tmp_path / "project"
    for name in ("src/deeper", ".claude", ".git/hooks", "tools", ".husky"):
        (folder / name).mkdir(parents=True)
    (tmp_path / "outside").mkdir()
    (tmp_path / "outside" / "x.py").touch()
    for name in ("src/code.py", "tools/check.sh", "tools/env", ".claude/settings.json"):
        (folder / name).touch()
    links = {
        "to-settings": ".claude",
        "to-hooks": ".git/hooks",
        "src/to-file": "../.claude/settings.json",
        "to-nothing": ".envrc",
        "to-no-folder": ".vscode",
        "out": "../outside",
        "dangling": "../outside/none.py",
        "circle": "circle",
        "down": "src/deeper",
        "twice": "to-settings",
        "src/deep": "../to-settings/..",
        ".git/hooks/pre-commit": "../../tools/check.sh",
        ".envrc-link": "tools/env",
        ".husky/_": "../src/husky",
    }
    for name, target in links.items():
        (folder / name).symlink_to(target)
    (folder / "other-name").hardlink_to(folder / ".claude" / "settings.json")
    return folder


def attacks(folder: Path) -> list[str]:
    """Return paths that lead to what makes programs run, or out of the folder, or nobody knows where."""
    written = [
        way for path in WANTED for way in (path, f"./{path}", f"src/../{path}", f"src//{path}", str(folder / path))
    ]
    nested = [f"src/deeper/{path}" for path in WANTED]
    alike = [
        *(
            ".CLAUDE/settings.json",
            ".Git/config",
            ".ENVRC",
            "TEAM.TOML",
            "OpenCode.JSON",
            "jenkinsFILE",
            ".envrc.",
            ".envrc ",
        ),
        *("team.toml.", "team\u200b.toml", "te\u00adam.toml", ".hu\u017fky/x", "mi\u017fe.toml", "\u200b.envrc"),
        *(
            "git~1/config",
            "GIT~1/hooks/x",
            "team.toml::$DATA",
            "team.toml:x",
            "\u202e.envrc",
            ".claude\ufe0f/settings.json",
        ),
    ]
    linked = [
        *("to-settings/settings.json", "to-settings/new.json", "to-hooks/post-commit", "src/to-file", "to-nothing"),
        *("to-no-folder/tasks.json", "twice/settings.json", "src/../to-settings/x", "src/deep/.claude/x"),
        *("tools/check.sh", "tools/env", "src/husky/pre-push", "other-name", "TO-SETTINGS/../.claude/x"),
    ]
    elsewhere = [
        *(
            "../x.py",
            "src/../../x.py",
            "out/x.py",
            "out/new.py",
            "dangling",
            "circle",
            "circle/x",
            "",
            ".",
            "..",
            "/",
            "/etc/passwd",
        ),
        *(
            "~/x.py",
            "~",
            "@src/code.py",
            "file:///etc/passwd",
            "src/\0.py",
            " src/code.py",
            "src/code.py\n",
            "out/../x.py",
            "down/../../x.py",
        ),
    ]
    return [*written, *nested, *alike, *linked, *elsewhere]


def test_nothing_that_makes_programs_run_is_a_usual_file_however_it_is_written(folder: Path) -> None:
    files = ProgramFiles(str(folder))

    assert [path for path in attacks(folder) if files.is_usual(path)] == []


def test_usual_files_are_usual(folder: Path) -> None:
    usual = [
        *(
            "src/code.py",
            "new.py",
            "src/deeper/new.py",
            "README.md",
            "AGENTS.md",
            "conftest.py",
            "Makefile",
            "setup.py",
        ),
        *(
            ".gitignore",
            "src/.gitkeep",
            ".env.example",
            "package.json",
            "tools/other.sh",
            "src/husky.py",
            str(folder / "x"),
        ),
        *("team.toml.md", "src/../new.py", "日本.py", "env", "git/x", "src/file with blanks.py"),
    ]
    (folder.parent / "by-link").symlink_to(folder)

    for place in (folder, folder.parent / "by-link"):
        files = ProgramFiles(str(place))
        assert [path for path in usual if not files.is_usual(path)] == []
    assert ProgramFiles(str(folder)).is_usual(str(folder.parent / "by-link" / "src" / "code.py"))


def test_nothing_makes_a_folder_a_repository_of_git_unasked(folder: Path) -> None:
    """Then git runs what its settings name, such as core.fsmonitor, in a command that a rule allows."""
    files = ProgramFiles(str(folder))
    parts = ("HEAD", "head", "HEAD.", ".git", ".gitmodules", ".gitattributes", ".lfsconfig")
    assert [part for part in parts for at in ("", "src/", "new/") if files.is_usual(at + part)] == []
    assert files.has("src/HEAD")
    # Folders are often called so.
    assert files.is_usual("src/head/code.py")
    assert files.is_usual("src/pre-commit/code.py")

    # One that is there already, as a file or as a link: what git would read in it, and what that would run.
    (folder / "src" / "fixture").mkdir()
    (folder / "src" / "fixture" / "HEAD").write_text("ref: refs/heads/main")
    (folder / "src" / "linked").mkdir()
    (folder / "src" / "linked" / "HEAD").symlink_to("refs/heads/main")
    for part in ("config", "objects/x", "refs/x", "evil.sh", "hooks/x", "commondir", "config.worktree"):
        assert not files.is_usual(f"src/fixture/{part}")
        assert not files.is_usual(f"src/linked/{part}")
        assert files.has(f"src/fixture/{part}")
        assert files.is_usual(f"src/{part}")


@pytest.mark.parametrize(
    ("settings", "named"),
    [
        ("[core]\n\thooksPath = githooks\n", "githooks/lib/common.sh"),
        ('[core]\n\thooksPath = "git hooks"\n', "git hooks/common.sh"),
        ("[core] hookspath=tools/hooks", "tools/hooks/common.sh"),
        ("[core]\n\tfsmonitor = ./watch.sh\n", "watch.sh"),
        ("[core]\n\tfsmonitor = tools/watch.sh --fast\n", "tools/watch.sh"),
        ('[filter "x"]\n\tclean = "python3 src/code.py %f"\n', "src/code.py"),
        ('[filter "x"]\n\tprocess = sh \\\n  top.sh\n', "top.sh"),
        ("[alias]\n\tx = !sh top.sh\n", "top.sh"),
        ("[include]\n\tpath = ../git.inc\n", "git.inc"),
        ("[include]\n\tpath = ../git.inc\n", "included-hooks/common.sh"),
        ("[core]\n\tattributesFile = attributes\n", "attributes"),
    ],
)
@pytest.mark.parametrize("is_worktree", [False, True])
def test_what_the_settings_of_git_name_makes_programs_run(
    settings: str, named: str, is_worktree: bool, folder: Path
) -> None:
    (folder / "top.sh").touch()
    (folder / "git.inc").write_text("[core]\n\thooksPath = included-hooks\n")
    assert ProgramFiles(str(folder)).is_usual(named)
    git = folder / ".git"
    if is_worktree:
        git = git.rename(folder.parent / "outside" / "git")
        (folder / ".git").write_text("gitdir: ../outside/git/worktrees/x\n")
        (git / "worktrees" / "x").mkdir(parents=True)
        (git / "worktrees" / "x" / "commondir").write_text("../..\n")
        settings = settings.replace("../git.inc", str(folder / "git.inc"))

    (git / "config").write_text(settings)

    assert not ProgramFiles(str(folder)).is_usual(named)
    assert ProgramFiles(str(folder)).has(named)
    assert ProgramFiles(str(folder)).is_usual("src/deeper/new.py")


def test_settings_of_git_that_include_themselves_are_read_once(folder: Path) -> None:
    (folder / ".git" / "config").write_text("[include]\n\tpath = config\n[core]\n\thooksPath = githooks\n")

    named = list(islice(git_targets(str(folder)), 1000))

    assert str(folder / "githooks") in named
    assert len(named) < 1000


def test_usual_settings_of_git_name_nothing(folder: Path) -> None:
    (folder / ".git" / "config").write_text(
        '[core]\n\tbare = false\n\teditor = src --wait\n\tworktree = ..\n[branch "main"]\n\tremote = .\n'
        "\tmerge = refs/heads/src\n[alias]\n\tx = !ls src tools/\n"
    )

    files = ProgramFiles(str(folder))
    assert [path for path in ("src/code.py", "tools/x.py", "new.py", "main") if not files.is_usual(path)] == []


def test_a_team_file_counts_by_what_is_in_it(folder: Path) -> None:
    (folder / "others.toml").write_text('name = "x"\n[[member]]\nname = "max"\n')
    (folder / "Cargo.toml").write_text('[workspace]\nmembers = ["a"]\n')
    os.mkfifo(folder / "pipe.toml")

    files = ProgramFiles(str(folder))
    assert not files.is_usual("others.toml")
    assert files.has("others.toml")
    assert not files.is_usual("pipe.toml")
    assert files.is_usual("Cargo.toml")
    assert files.is_usual("pyproject.toml")


def test_a_project_in_a_hidden_folder_is_a_usual_one(tmp_path: Path) -> None:
    folder = tmp_path / ".worktrees" / "max"
    folder.mkdir(parents=True)

    assert ProgramFiles(str(folder)).is_usual("code.py")
    assert not ProgramFiles(str(folder)).is_usual(".envrc")


def test_a_link_to_the_folder_itself_does_not_make_all_of_it_such_files(folder: Path) -> None:
    (folder / ".root").symlink_to(".")
    (folder / ".above").symlink_to("..")

    assert ProgramFiles(str(folder)).is_usual("src/code.py")


def test_files_that_changed_are_found_by_their_names_and_by_links_that_lead_to_them(folder: Path) -> None:
    files = ProgramFiles(str(folder))
    changed = [
        "src/code.py",
        ".venv/bin/x",
        "node_modules/.bin/x",
        ".envrc",
        "sub/.claude/x",
        "tools/check.sh",
        "tools/other.sh",
        "team.toml",
        ".gitignore",
    ]

    assert [path for path in changed if files.has(path)] == [".envrc", "sub/.claude/x", "tools/check.sh", "team.toml"]


def test_every_name_of_the_list_counts() -> None:
    assert [
        name
        for name in (*FOLDERS, *FILES, *LAST_NAMES, *(f"{one}x" for one in BEGINNINGS), *(f"x{one}" for one in ENDINGS))
        if not is_program_name(name)
    ] == []


def edit(*paths: str, diff: str = "+x", command: str = "") -> ApprovalAsked:
    return ApprovalAsked(id="q", kind="edit", tool="write", paths=paths, diff=diff, command=command)


def test_an_edit_is_usual_only_if_all_its_files_are_and_it_is_shown(folder: Path) -> None:
    asked = [
        (edit("src/code.py"), True),
        (edit("src/code.py", "README.md"), True),
        (edit("src/code.py", ".envrc"), False),
        (edit("src/code.py", diff=""), False),
        (edit(), False),
        (edit("src/code.py", command="rm x"), False),
    ]

    assert [(question, is_usual_edit(question, str(folder))) for question, _ in asked] == asked


@pytest.mark.parametrize(
    ("diff", "is_usual"),
    [
        ('+    "test": "pytest"', True),
        ('+    "lodash": "^4.0.0"', True),
        ('+    "postinstall": "node x.js"', False),
        ('     "prepare":\n-"husky"\n+"node x.js"', False),
        ('+    "post\\u0069nstall": "node x.js"', False),
        ('+  "lint-staged": {"*": "node x.js"}', False),
        ('+    "pnpm:devPreinstall": "node x.js"', False),
        ('+  "gypfile": true', False),
    ],
)
@pytest.mark.parametrize("name", ["package.json", "web/Package.JSON"])
def test_scripts_of_a_package_that_run_by_themselves_are_asked_for(
    name: str, diff: str, is_usual: bool, folder: Path
) -> None:
    assert is_usual_edit(edit(name, diff=diff), str(folder)) is is_usual


def test_what_runs_by_itself_of_a_package() -> None:
    package = {"name": "x", "scripts": {"test": "a", "prepare": "b"}, "husky": {"hooks": {}}}

    assert scripts_of(package) == ({"prepare": "b"}, {"husky": {"hooks": {}}})
    assert scripts_of({**package, "name": "y", "scripts": {"test": "z", "prepare": "b"}}) == scripts_of(package)
    assert scripts_of([1]) == [1]


def test_a_folder_that_cannot_be_read_has_no_usual_files_but_by_their_names(tmp_path: Path) -> None:
    gone = tmp_path / "gone"

    assert ProgramFiles(str(gone)).is_usual("x.py")
    assert not ProgramFiles(os.fspath(gone)).is_usual(".envrc")


@pytest.fixture
def own_places(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Have everything of bullpen's in the agent's folder."""
    monkeypatch.setenv("BULLPEN_HOME", str(folder / "data"))
    monkeypatch.setenv("XDG_STATE_HOME", str(folder / "state"))
    (folder / "link").symlink_to("data")
    for name in ("c.db", "new.db-wal", "notes"):
        (folder / name).touch()
    sqlite3.connect(folder / "c.db").execute("CREATE TABLE t (c)").connection.close()


@pytest.mark.usefixtures("own_places")
def test_bullpens_own_files_are_never_usual_wherever_they_lie(folder: Path) -> None:
    files = ProgramFiles(str(folder))
    own = [
        *("data/trusted.json", "data/allowed-for-good.json", "data/conversations.db", "data/new/x", "link/x", "DATA/x"),
        *("state/bullpen/doors/x", "c.db", "c.db-wal", "c.db-shm", "c.db-journal", "c.db.sessions"),
        *("c.db-files/1/config", "new.db", "new.db-wal", "new.db.sessions", "new.db-files/x"),
        # The database is not there yet, or may be another process's.
        *("later.db.sessions", "later.db.sessions.lock", "LATER.DB.sessions", "later.db-files/1/x", "sub/later.db-wal"),
        *("conversations.db", "sub/conversations.db", "conversations.db-journal", "sub/Conversations.db.sessions"),
    ]
    others = [
        *("later.database-files/x", "later.sessions", "adb.sessions", "db-files/x", "my-conversations.md"),
        *("database/x", "state/x", "notes", "notes.sessions", "notes-wal", "my-files/x", "c.dbx", "src/code.py"),
    ]

    assert [path for path in own if files.is_usual(path)] == []
    assert [path for path in others if not files.is_usual(path)] == []


def test_a_folder_among_bullpens_data_has_usual_files(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("BULLPEN_HOME", str(folder.parent))

    assert ProgramFiles(str(folder)).is_usual("src/code.py")
    assert not ProgramFiles(str(folder.parent)).is_usual("trusted.json")


def test_what_is_different_for_each_process_is_never_usual(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(folder / "src")

    assert not ProgramFiles(str(folder)).is_usual("/proc/self/cwd/../src/code.py")
    assert not ProgramFiles(str(folder)).is_usual("/dev/fd/../cwd/code.py")
