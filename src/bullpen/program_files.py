"""The one list of files that make programs run by being there, and whether a path leads to one of them.

A path is compared as the file system sees it: links are followed, also those to what does not exist yet, and letters
that some file system takes for the same are the same. What cannot be known counts as such a file.
"""

import os
import re
import stat
import unicodedata
from collections.abc import Iterator
from pathlib import PurePath

from bullpen.git_settings import git_targets
from bullpen.own_files import is_own_file
from bullpen.real_paths import real_path

FOLDERS = frozenset(
    {
        # CLIs
        *(".agents", ".aider", ".amazonq", ".augment", ".claude", ".cline", ".codex", ".continue", ".copilot"),
        *(".crush", ".factory", ".gemini", ".goose", ".junie", ".kilocode", ".kiro", ".opencode", ".openhands", ".pi"),
        *(".qodo", ".qwen", ".roo", ".vibe"),
        # editors
        *(".cursor", ".devcontainer", ".fleet", ".idea", ".nova", ".trae", ".vs", ".vscode", ".windsurf", ".zed"),
        # version control, its hooks, and CI
        *(".buildkite", ".circleci", ".git", ".gitea", ".github", ".gitlab", ".hg", ".husky", ".jj", ".svn"),
        *(".teamcity", ".woodpecker"),
        # package managers, and programs that ask others for a password
        *(".aws", ".bundle", ".cargo", ".mvn", ".ssh", ".yarn"),
        # not hidden: what a shell and Python run when they start
        *("mise", "sitecustomize", "usercustomize"),
    }
)
"""Folders that hold settings and hooks, for CLIs that take patterns. Any other hidden one counts, too."""
FILES = frozenset(
    {
        *("codebuff.json", "crush.json", "mcp.json", "opencode.json", "opencode.jsonc", "team.toml"),
        *("amplify.yml", "appveyor.yml", "bitbucket-pipelines.yml", "bitrise.yml", "buildspec.yml", "circle.yml"),
        *("cloudbuild.yaml", "cloudbuild.yml", "codemagic.yaml", "netlify.toml", "vercel.json", "wercker.yml"),
        # read again by direnv as soon as they change
        *("default.nix", "devbox.json", "flake.nix", "guix.scm", "manifest.scm", "shell.nix"),
        *("binding.gyp", "bunfig.toml", "composer.json", "hk.pkl", "pnpm-workspace.yaml", "pyvenv.cfg"),
        *("rust-toolchain", "rust-toolchain.toml"),
    }
)
"""Files that are not hidden: settings of CLIs, team files, CI, what tools run when they start."""
BEGINNINGS = (
    *("azure-pipelines", "captainhook.", "devenv.", "grumphp.", "husky.config.", "jenkinsfile", "lefthook-local."),
    *("lefthook.", "lint-staged.config.", "mise.", "prek.", "simple-git-hooks.", "sitecustomize.", "usercustomize."),
)
"""How names begin of CI, hooks of git and what tools run when they start, with any ending."""
ENDINGS = ("._pth", ".code-workspace", ".ipr", ".iws", ".pth", ".sublime-project", ".sublime-workspace")
LAST_NAMES = frozenset(
    {
        # makes the folder around it a repository of git, whose settings and hooks are beside it
        "head",
        # hooks of git, wherever its settings say that they are
        *("applypatch-msg", "commit-msg", "fsmonitor-watchman", "post-applypatch", "post-checkout", "post-commit"),
        *("post-index-change", "post-merge", "post-receive", "post-rewrite", "post-update", "pre-applypatch"),
        *("pre-auto-gc", "pre-commit", "pre-merge-commit", "pre-push", "pre-rebase", "pre-receive"),
        *("prepare-commit-msg", "proc-receive", "push-to-checkout", "reference-transaction", "sendemail-validate"),
    }
)
"""Names of files that make programs run; folders are often called so, too."""
PLAIN = frozenset(
    {
        *(".dockerignore", ".editorconfig", ".env.example", ".env.sample", ".env.template", ".eslintignore"),
        *(".gitignore", ".gitkeep", ".keep", ".mailmap", ".nojekyll", ".npmignore", ".prettierignore"),
    }
)
"""Hidden files that make nothing run."""
WRITTEN_BY_TOOLS = frozenset(
    {
        *(".angular", ".benchmarks", ".build", ".cache", ".coverage", ".dart_tool", ".direnv", ".ds_store", ".eggs"),
        *(".eslintcache", ".expo", ".gradle", ".hypothesis", ".ipynb_checkpoints", ".mypy_cache", ".next", ".nox"),
        *(".nuxt", ".nyc_output", ".output", ".parcel-cache", ".pytest_cache", ".ruff_cache", ".serverless"),
        *(".svelte-kit", ".terraform", ".tox", ".turbo", ".venv", ".vite", "__pycache__", "node_modules", "venv"),
    }
)
"""What usual commands write: an edit there is asked for like any other of hidden files, and after a turn it is not."""
PACKAGE = "package.json"
SCRIPTS = frozenset(
    {
        *("dependencies", "install", "postinstall", "postprepare", "preinstall", "prepare", "preprepare"),
        *("pnpm:devPreinstall", "prepublish"),
    }
)
"""Scripts of a package that run by themselves when packages are installed."""
HOOKS = frozenset({"gitHooks", "gypfile", "husky", "lint-staged", "pre-commit", "simple-git-hooks"})
"""Keys of a package with commands that git hooks run, or by which something is built when it is installed."""

MOST_ENTRIES = 2000
"""Entries of folders with settings that are looked at for links."""
# What ext4 and HFS+ leave out when they compare names: code points that are ignorable by default.
_IGNORABLE = re.compile(
    "[\u00ad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f\u200b-\u200f\u202a-\u202e\u2060-\u206f\u3164\ufe00-\ufe0f"
    "\ufeff\uffa0\ufff0-\ufff8\U0001bca0-\U0001bca3\U0001d173-\U0001d17a\U000e0000-\U000e0fff]"
)
MOST_READ = 256 * 1024
_MEMBER = re.compile(rb"\bmember\b")
_SHORT = re.compile(r"\.?git~\d+")
"""How Windows may call `.git`, too."""


class ProgramFiles:
    """The files below one folder that make programs run."""

    def __init__(self, folder: str) -> None:
        self.folder = os.path.realpath(folder)
        self._targets: tuple[str, ...] | None = None

    @property
    def targets(self) -> tuple[str, ...]:
        """The real paths to which such files lead: hooks of git that are links, what git's settings name."""
        if self._targets is None:
            found = {*_targets(self.folder), *git_targets(self.folder)}
            # One that leads to the folder itself, or to what is around it, would make all of it such a file.
            self._targets = tuple(sorted(target for target in found if not _is_below(self.folder, target)))
        return self._targets

    def is_usual(self, path: str) -> bool:
        """Return whether a path leads to a file in the folder that makes nothing run, and that is not bullpen's own."""
        try:
            return bool(path) and all(self._is_usual(way) for way in self._ways(path))
        except (OSError, ValueError):
            return False

    def has(self, path: str) -> bool:
        """Return whether a file that has changed below the folder makes programs run; `path` begins at the folder."""
        if not is_noticed(path):
            return False
        real = os.path.realpath(os.path.join(self.folder, path))  # noqa: PTH118
        try:
            return is_program_path(path) or self._is_target(real) or self._is_special(real)
        except OSError:
            return True

    def _ways(self, path: str) -> tuple[str, str]:
        """Return a path as the kernel follows it, and as programs do that take ".." away before they look at links."""
        # A program may replace these beginnings by a home folder, or leave them out.
        if path.startswith(("~", "@", "file:")) or path != path.strip() or "\0" in path:
            raise ValueError(path)
        whole = os.path.join(self.folder, path)  # noqa: PTH118
        return whole, os.path.normpath(whole)

    def _is_usual(self, path: str) -> bool:
        real = real_path(path)
        if not _is_below(real, self.folder) or self._is_target(real) or self._is_special(real):
            return False
        if is_program_path(os.path.relpath(real, self.folder)) or is_own_file(real, self.folder):
            return False
        try:
            status = os.lstat(real)
        except FileNotFoundError:
            return True
        # Its other names may be anywhere. A link that is still one leads in a circle.
        return stat.S_ISREG(status.st_mode) and status.st_nlink == 1

    def _is_target(self, real: str) -> bool:
        """Return whether such files lead to a path: `.git/hooks/pre-commit -> ../../check.sh`, settings of git."""
        return any(_is_below(real, target) for target in self.targets)

    def _is_special(self, real: str) -> bool:
        """Return whether a file is in a repository without a folder `.git`, or is a team file with another name."""
        above = [str(folder) for folder in PurePath(real).parents if _is_below(str(folder), self.folder)]
        is_in_repository = any(_is_head(f"{folder}/HEAD") for folder in above)
        return is_in_repository or is_team_file(real)


def is_program_name(name: str) -> bool:
    """Return whether a file or folder with this name makes programs run."""
    plain = folded(name)
    if plain in PLAIN or plain in ("", ".", ".."):
        return False
    is_hidden = plain.startswith(".") or _SHORT.match(plain) is not None
    is_listed = plain in FILES or plain in FOLDERS or plain in LAST_NAMES
    return is_hidden or is_listed or plain.startswith(BEGINNINGS) or plain.endswith(ENDINGS)


def is_program_path(path: str) -> bool:
    """Return whether a path has such a name in it."""
    *folders, last = PurePath(path).parts or ("",)
    return is_program_name(last) or any(is_program_name(one) and folded(one) not in LAST_NAMES for one in folders)


def is_noticed(path: str) -> bool:
    """Return whether a change of a file counts after a turn: not where usual commands write."""
    return not any(folded(part) in WRITTEN_BY_TOOLS for part in PurePath(path).parts)


def folded(name: str) -> str:
    """Return a name as the least exact file system compares it: letters, accents, ignorable signs, dots at the end."""
    plain = _IGNORABLE.sub("", unicodedata.normalize("NFD", name)).casefold()
    # On Windows a colon begins the name of a stream of the same file.
    plain = unicodedata.normalize("NFD", plain).partition(":")[0].strip()
    return plain if plain.strip(". ") == "" else plain.rstrip(". ")


def is_team_file(path: str) -> bool:
    """Return whether a file is a team file, regardless of its name."""
    return folded(path).endswith(".toml") and _has_members(path)


def is_package(path: str) -> bool:
    """Return whether a file may have scripts that run by themselves."""
    return folded(PurePath(path).name) == PACKAGE


def may_change_scripts(diff: str) -> bool:
    """Return whether a change of a package may change what runs by itself; an escape could hide its name."""
    return "\\u" in diff or any(f'"{word}"' in diff for word in SCRIPTS | HOOKS)


def scripts_of(package: object) -> object:
    """Return what runs by itself of a package that was read."""
    if not isinstance(package, dict):
        return package
    scripts = package.get("scripts", {})
    run = {name: scripts[name] for name in SCRIPTS if name in scripts} if isinstance(scripts, dict) else scripts
    return run, {name: package[name] for name in HOOKS if name in package}


def _is_head(path: str) -> bool:
    return os.path.lexists(path) and not os.path.isdir(path)  # noqa: PTH112


def _has_members(path: str) -> bool:
    """Return whether a file is a team file as it is now. A new one is nobody's until a person opens it."""
    if not os.path.isfile(path):  # noqa: PTH113 - a pipe would be waited for
        return False
    with open(path, "rb") as file:  # noqa: PTH123 - a path may be any text
        return _MEMBER.search(file.read(MOST_READ)) is not None


def _is_below(path: str, folder: str) -> bool:
    return path == folder or path.startswith(f"{folder.rstrip('/')}/")


def _targets(folder: str) -> Iterator[str]:
    """Yield where links lead that are among the files at the top of a folder that make programs run."""
    waiting, left = [folder], MOST_ENTRIES
    while waiting and left:
        here = waiting.pop()
        try:
            entries = list(os.scandir(here))
        except OSError:
            continue
        for entry in entries[:left]:
            left -= 1
            if here == folder and not is_program_name(entry.name):
                continue
            if entry.is_symlink():
                yield os.path.realpath(entry.path)
            elif entry.is_dir(follow_symlinks=False) and entry.name not in ("objects", "refs", "logs"):
                waiting.append(entry.path)
