"""The programs that people allow most, and which of their options and subcommands a plain rule covers; only data.

Where a program has few options that run or write something, and accepts no unknown ones, those are listed. Where it has
many, or plugins add some, the usual ones are listed, and all others count as risky.
"""

from msgspec import Struct


class Program(Struct, frozen=True, kw_only=True):
    """What makes a call of a program more than it seems."""

    options: str = ""
    """Options that run or write. A long one also counts if it is shortened, a short one among others: `-xvI`."""
    usual: str = ""
    """If there are any, all other options are risky. With `=` at the end: one that has a value."""
    globals: str = ""
    """Options before the subcommand that change nothing and take no value. Any others there are risky."""
    subcommands: str = ""
    """Those that a rule covers which names none; empty: the program has none."""
    groups: dict[str, str] = {}
    """Subcommands with subcommands: the words after them that a rule covers which names none."""
    more: dict[str, str] = {}
    """More of `options`, for one subcommand."""
    words: str = ""
    """A pattern of other words that are risky."""
    ends_options: bool = False
    """Whether what follows `--` is not for the program itself. After an option, `--` may be its value."""
    is_exact: bool = False
    """Whether options are written in full, with one dash or two, and never several in one word."""
    has_bundle: bool = False
    """Whether its first word may be a bundle of short options without a dash."""
    runs: bool = False
    """Whether what follows the first name after `run` is for what it runs."""


GIT = Program(
    options=(
        "--output --output-directory --ext-diff --textconv --filters --no-index --upload-pack --receive-pack "
        "--exec --extcmd --open-files-in-pager --template --config --separate-git-dir --tool --gui "
        "--unsafe-paths --strategy --gpg-sign --build-fake-ancestor --export-marks --export-pack-edges "
        "--smtp-server --sendmail-cmd --to-cmd --cc-cmd --header-cmd"
    ),
    globals="--no-pager -P --no-optional-locks --no-replace-objects --literal-pathspecs --no-lazy-fetch",
    subcommands=(
        "add am apply blame branch cat-file check-ignore checkout cherry cherry-pick clean commit describe diff "
        "diff-files diff-index diff-tree fetch for-each-ref format-patch grep log ls-files ls-remote ls-tree merge "
        "merge-base mv name-rev pull push range-diff rebase reflog reset restore rev-list rev-parse revert rm "
        "shortlog show show-branch show-ref stash status switch tag version whatchanged "
        "bisect config remote submodule worktree"
    ),
    groups={
        "bisect": "start good bad new old skip reset log terms",
        "bundle": "verify list-heads",
        "config": "get list --get --get-all --get-regexp --list -l",
        "hook": "list",
        "lfs": "env ls-files status version",
        "remote": "-v --verbose show get-url",
        "submodule": "status summary",
        "worktree": "list",
    },
    more={
        "am": "-S",
        "archive": "-o --remote",
        "bugreport": "-o",
        "checkout-index": "--prefix",
        "cherry-pick": "-S",
        "clone": "-u -c",
        "column": "--command",
        "commit": "-S",
        "config": (
            "--global --system --worktree --file -f --edit -e --add --replace-all --unset --unset-all "
            "--rename-section --remove-section"
        ),
        "daemon": "--access-hook",
        "diagnose": "-o",
        "difftool": "-x -t -g",
        "filter-branch": (
            "-f -d --force --setup --tree-filter --index-filter --env-filter --msg-filter --commit-filter "
            "--parent-filter --tag-name-filter"
        ),
        "format-patch": "-o",
        "grep": "-O",
        "help": "-w -i -m --web --info --man",
        "index-pack": "-o",
        "instaweb": "-d -b --httpd --browser",
        "interpret-trailers": "--in-place",
        "mailsplit": "-o",
        "merge": "-s -S",
        "mergetool": "-t -g",
        "pull": "-s -S",
        "push": "--signed",
        "read-tree": "--index-output",
        "rebase": "-x -s -i -S --interactive",
        "remote": "add rename remove rm set-head set-branches set-url prune update",
        "revert": "-S",
        "tag": "-s -u --sign --local-user",
    },
    # A program that fetches: `ext::COMMAND` runs any. Two paths outside are compared as with --no-index.
    words=r"[\w+.-]+::|[/~]|(.*/)?\.\.(/|$)",
)
NPM = Program(
    # Each of its settings is an option, also shortened and with one dash.
    usual=(
        "-silent -s -quiet -q -verbose -no-color -color -no-fund -no-audit -offline -prefer-offline -if-present "
        "-workspaces -workspace -w -include-workspace-root -json -long -l -depth -omit -include -all -a -parseable "
        "-save-dev -D -save -S -no-save -save-exact -E -save-optional -O -save-prod -P -dry-run -loglevel "
        "-no-progress -legacy-peer-deps -production -help -h"
    ),
    globals="--silent -s --quiet -q --verbose --no-color --no-fund --no-audit --offline",
    subcommands=(
        "test t tst run run-script start stop restart ls list outdated view info audit explain why config pkg cache"
    ),
    groups={"config": "get list ls", "pkg": "get", "cache": "verify", "audit": "--json signatures"},
    ends_options=True,
    is_exact=True,
)
PYTEST = Program(
    # Plugins have options of their own, and `-p` counts wherever it is, also after `--`.
    usual=(
        "-x -q -v -s -l -h -k= -m= -r= -n= --exitfirst --quiet --verbose --verbosity --showlocals --no-showlocals "
        "--maxfail --tb --capture --show-capture --color --code-highlight --durations --durations-min --no-header "
        "--no-summary --lf --last-failed --ff --failed-first --nf --new-first --sw --stepwise --sw-skip "
        "--stepwise-skip --lfnf --last-failed-no-failures --co --collect-only --deselect --ignore --ignore-glob "
        "--strict --strict-markers --strict-config --runxfail --full-trace --setup-show --setup-only --setup-plan "
        "--fixtures --fixtures-per-test --markers --help --version --disable-warnings --disable-pytest-warnings "
        "--keyword --cov --cov-branch --cov-append --cov-fail-under --no-cov --no-cov-on-fail --numprocesses "
        "--maxprocesses --dist --timeout --reruns --reruns-delay --asyncio-mode --benchmark-only --benchmark-skip "
        "--benchmark-disable --randomly-seed --forked"
    ),
    # A file with more arguments.
    words="@",
)
FIND = Program(
    options="-exec -execdir -ok -okdir -delete -fprint -fprint0 -fprintf -fls -files0-from",
    is_exact=True,
)
RG = Program(options="--pre --hostname-bin --search-zip -z", ends_options=True)
# What its scripts do is looked at, too.
SED = Program(
    usual=(
        "-n -E -r -e -s -u -z --quiet --silent --regexp-extended --expression --separate --unbuffered --null-data "
        "--posix --sandbox"
    )
)
TAR = Program(
    usual=(
        "-t -x -v -z -j -J -f -k -O --list --extract --get --verbose --gzip --gunzip --bzip2 --xz --zstd --file "
        "--keep-old-files --skip-old-files --to-stdout --exclude --wildcards --strip-components --no-same-owner "
        "--no-same-permissions"
    ),
    # An archive on another machine, which is reached by a program: `host:file`.
    words=".*:",
    has_bundle=True,
)
MAKE = Program(
    usual=(
        "-k -s -j= -n -B -i -d -w -q -O= -l= --keep-going --silent --quiet --jobs --dry-run --always-make "
        "--ignore-errors --trace --debug --print-directory --no-print-directory --output-sync --load-average "
        "--question --warn-undefined-variables"
    ),
    # Another target, or a variable such as SHELL=.
    words=r"[^-]",
    globals="-k -s -j -j2 -j4 -j8",
)
DOCKER = Program(
    usual=(
        "-a -q -f -s -l -i -t -d -n= -e= -w= -h --all --quiet --follow --filter= --format= --no-trunc --size --latest "
        "--last= --tail= --since= --until= --timestamps --details --no-stream --digests --tree --human --type= --rm "
        "--interactive --tty --detach --name= --env= --workdir= --label= --platform= --memory= --cpus= --pull= "
        "--no-cache --progress= --target= --build-arg= --tag= --services --no-color --no-log-prefix --time= "
        "--limit= --help --dry-run"
    ),
    globals="--debug -D",
    subcommands=(
        "build buildx compose container diff events history image images info inspect logs network port ps pull "
        "restart run search start stats stop system top version volume"
    ),
    groups={
        "buildx": "du inspect ls version",
        "compose": "config events images logs ls port ps stats top version volumes",
        "container": "diff inspect list logs ls port ps stats top",
        "context": "inspect ls show",
        "image": "history inspect list ls",
        "network": "inspect list ls",
        "system": "df info",
        "volume": "inspect list ls",
    },
    more={"compose": "-f --file run exec", "build": "-f --file", "buildx": "-f --file bake"},
    runs=True,
)
CARGO = Program(
    usual=(
        "-q -v -r -p= -j= -F= -h --quiet --verbose --color --locked --offline --frozen --release --profile --lib "
        "--bin --bins --test --tests --example --examples --bench --benches --all-targets --doc --no-run "
        "--no-fail-fast --keep-going --package --workspace --all --exclude --jobs --features --all-features "
        "--no-default-features --no-deps --document-private-items --check --depth --edges --invert --duplicates "
        "--format-version --dry-run --help --version "
        # after `--`, for the tests and for clippy
        "--nocapture --no-capture --show-output --test-threads --exact --ignored --include-ignored --skip --list "
        "-D= -W= -A= -d= -w="
    ),
    globals="--quiet -q --verbose -v --locked --offline --frozen",
    subcommands=(
        "b bench build c check clean clippy d doc fetch fmt locate-project metadata pkgid r run search t test tree "
        "update version"
    ),
    # Another compiler, or a file with more arguments.
    words=r"[+@]",
)
GO = Program(
    usual=(
        "-a -n -p -race -msan -asan -cover -covermode -coverpkg -v -work -x -buildvcs -json -tags -trimpath -short "
        "-run -skip -count -cpu -failfast -list -parallel -timeout -bench -benchtime -benchmem -shuffle -vet "
        "-fullpath -args -m -deps -e -f -test -find -versions -all -src -cmd -changed -h -help"
    ),
    subcommands="build doc env fmt help list mod test version vet",
    groups={"mod": "download graph tidy verify why", "work": "sync"},
    is_exact=True,
)
UV = Program(
    usual=(
        "-q -v -n -U -P= -h --quiet --verbose --offline --no-progress --frozen --locked --all-extras --extra= "
        "--no-extra= --group= --no-group= --only-group= --all-groups --dev --no-dev --only-dev --no-default-groups "
        "--exact --inexact --no-sync --no-editable --no-install-project --no-cache --refresh --upgrade "
        "--upgrade-package= --dry-run --check --all-packages --package= --color= --resolution= --prerelease= "
        "--outdated --depth= --invert --universal --no-dedupe --format= --no-config --help"
    ),
    globals="--quiet -q --verbose -v --offline --no-progress --frozen --locked",
    subcommands="cache export lock pip python self sync tool tree version",
    groups={
        "cache": "dir",
        "pip": "check freeze list show tree",
        "python": "dir find list",
        "self": "version",
        "tool": "dir list",
    },
    runs=True,
)

PROGRAMS = {
    "git": GIT,
    "npm": NPM,
    "pytest": PYTEST,
    "find": FIND,
    "rg": RG,
    "sed": SED,
    "tar": TAR,
    "make": MAKE,
    "docker": DOCKER,
    "cargo": CARGO,
    "go": GO,
    "uv": UV,
}
OTHER_NAMES = {
    "bsdtar": "tar",
    "gfind": "find",
    "gmake": "make",
    "gsed": "sed",
    "gtar": "tar",
    "nerdctl": "docker",
    "podman": "docker",
    "py.test": "pytest",
}
