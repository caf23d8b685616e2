"""What turns changed, in a real browser: below the message, as a diff, with comments, taken back, and harmless."""

import asyncio
import json
import subprocess
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Literal

import pytest
from playwright.async_api import Page, expect
from tests.web.browser.stage import OpenBrowser, play
from tests.web.browser.test_axe import findings
from tests.web.browser.test_hostile import Witness, payloads
from tests.web.changed_files import ID, TEAM, record, write_changed

from bullpen.conversation.conversation import Conversation
from bullpen.file_changes import FileChange
from bullpen.store.sqlite import SqliteStore
from bullpen.testing.site import Site, site
from bullpen.testing.stage import put_on_path
from bullpen.web.patches import MOST_ROWS

ROWS = 3_000
EDITS = f"""
import pathlib, sys
sys.stdin.read()
login = pathlib.Path("login.py")
if "new way" in login.read_text():
    print("I have read your comment.")
else:
    login.write_text(login.read_text().replace("old way", "new way " + "and more " * 30))
    pathlib.Path("old.txt").rename("new.txt")
    pathlib.Path("logo.png").write_bytes(bytes(range(256)))
    pathlib.Path("long.txt").write_text("".join(f"line {{n}}\\n" for n in range({ROWS})))
    print("I changed the login.")
"""
FAILS = 'import pathlib, sys; sys.stdin.read(); pathlib.Path("half.txt").write_text("half"); sys.exit(3)'


@asynccontextmanager
async def workshop(folder: Path, open_browser: OpenBrowser) -> AsyncIterator[tuple[Site, Page, Conversation, Path]]:
    """Yield a site with agents that edit a repository of git, a signed-in page, and a conversation."""
    repository = folder / "repository"
    repository.mkdir()
    (repository / "login.py").write_text("def login(user: str) -> bool:\n    # the old way\n    return check(user)\n")
    (repository / "old.txt").write_text("one\ntwo\nthree\n")
    for command in (["init", "-q"], ["add", "-A"], ["-c", "user.name=k", "-c", "user.email=k@k", "commit", "-qm", "x"]):
        subprocess.run(["git", "-C", str(repository), *command], check=True)
    members = [
        f'[[member]]\nname = "{name}"\npermissions = "edit"\ncommand = {json.dumps([sys.executable, "-c", code])}\n'
        for name, code in (("max", EDITS), ("sarah", FAILS))
    ]
    team = repository / "team.toml"
    team.write_text(f'name = "shop"\nlead = "max"\n[[member]]\nname = "kim"\n{"".join(members)}', encoding="utf-8")
    async with site(folder, team) as served, open_browser() as browser:
        page = await (await browser.new_context(viewport={"width": 1200, "height": 900})).new_page()
        page.set_default_timeout(60_000)
        await served.let_in(page)
        yield served, page, (await served.hub.begin()).conversation, repository


TITLES = {"turn": ["turn 2 · sarah", "turn 1 · max"], "member": ["max", "sarah"], "all": ["All together"]}


def test_what_a_turn_changes_comes_to_pages_that_are_open(tmp_path: Path, open_browser: OpenBrowser) -> None:
    async def story() -> None:
        async with workshop(tmp_path, open_browser) as (served, first, talk, _):
            pages = {by: first if by == "turn" else await first.context.new_page() for by in TITLES}
            for by, page in pages.items():
                await page.goto(f"{served.url}/c/{talk.id}/changes?by={by}")
                await expect(page.locator(".empty")).to_be_visible()
                await page.evaluate("window.stayed = true")
            await talk.say("Please do it.", sender="kim")
            for by, page in pages.items():
                login = page.locator(".file", has_text="login.py")
                await expect(login).to_have_count(1)
                if by != "turn":
                    await page.bring_to_front()
                    await login.locator("summary").click()
                    await page.locator("h1").click()
                await expect(login.locator("tr.added .line")).to_contain_text("# the new way")
            await talk.say("@sarah And you?", sender="kim")
            for by, page in pages.items():
                await page.bring_to_front()
                await expect(page.locator(".headline")).to_contain_text("5 files")
                await expect(page.locator(".file", has_text="half.txt")).to_have_count(1)
                login = page.locator(".file", has_text="login.py")
                await expect(login.locator("tr.added .line")).to_contain_text("# the new way")
                await expect(page.locator("section.changes h2")).to_have_text(TITLES[by])
                assert await page.evaluate("window.stayed"), "it was not read as a whole again"

    play(story())


def test_from_the_message_to_the_lines_to_a_comment_and_back_again(tmp_path: Path, open_browser: OpenBrowser) -> None:
    async def story() -> None:
        async with workshop(tmp_path, open_browser) as (served, page, talk, repository):
            await page.goto(f"{served.url}/c/{talk.id}")
            await talk.say("Please do it.", sender="kim")
            # It comes while the page is open, and is still there when it is read again.
            await expect(page.locator("#m2 footer .changed")).to_have_text("4 files, +3,001 −1")
            await page.reload()
            (repository / "notes.md").write_text("By hand.\n")
            await talk.say("@sarah And you?", sender="kim")
            await expect(page.locator("#m3 .between").first).to_contain_text("Somebody changed 1 file between turns")
            await expect(page.locator("#m3 .between").last).to_contain_text("sarah changed 1 file in turn 2 (+1).")
            await page.locator("#m2 .changed").click()
            await expect(page.locator(".file")).to_have_count(4)
            await expect(page.locator(".file", has_text="old.txt → new.txt").locator(".about")).to_have_text("renamed")
            await expect(page.locator(".file", has_text="logo.png").locator(".lines")).to_contain_text("binary")
            login = page.locator(".file", has_text="login.py")
            await expect(login.locator("tr.added .line")).to_contain_text("# the new way and more")
            await expect(login.locator("tr.context .k-k").first).to_have_text("def")
            # A long file is closed, and comes in parts.
            long = page.locator(".file", has_text="long.txt")
            await expect(long.locator(".box")).to_have_count(0)
            await long.locator("summary").click()
            await expect(long.locator("tr[data-line]")).to_have_count(500)
            await long.get_by_role("button", name="Show more: 2,500 lines left").click()
            await expect(long.locator("tr[data-line]")).to_have_count(1_000)
            await long.locator("summary").click()
            # With keys: the next files, the next lines, two columns, a comment.
            await page.reload()
            await expect(login.locator("tr.added")).to_be_visible()
            await page.keyboard.press("n")
            await expect(login.locator("summary")).to_be_focused()
            for _ in range(3):
                await page.keyboard.press("j")
            await expect(login.locator("tr.added")).to_be_focused()
            await page.keyboard.press("c")
            await expect(page.get_by_role("dialog")).to_contain_text("login.py:2")
            await expect(page.get_by_label("Your comment")).to_be_focused()
            await page.keyboard.press("Escape")
            await expect(login.locator("tr.added")).to_be_focused()
            await page.keyboard.press("n")
            await expect(page.locator(".file", has_text="logo.png").locator("summary")).to_be_focused()
            await page.keyboard.press("p")
            await expect(login.locator("summary")).to_be_focused()
            await page.keyboard.press("s")
            await expect(login.locator(".halves .box")).to_have_count(2)
            await login.locator("tr.removed .number").click()
            await page.get_by_label("Your comment").fill("Why is it gone?")
            await page.get_by_role("button", name="Send").click()
            await expect(page.locator(".told")).to_contain_text("sent to max")
            await expect(page.get_by_role("dialog")).to_have_count(0)
            await page.get_by_role("link", name="Chat").click()
            said = page.locator(".message.human", has_text="Why is it gone?")
            await expect(said).to_contain_text("login.py:2 (removed)")
            await expect(said.locator(".to")).to_have_text("to max")
            await expect(page.locator(".message.ai").last).to_contain_text("I have read your comment.")

    play(story())


def test_a_turn_is_taken_back_and_brought_back_with_a_question_first(tmp_path: Path, open_browser: OpenBrowser) -> None:
    async def story() -> None:
        async with workshop(tmp_path, open_browser) as (served, page, talk, repository):
            await talk.say("Please do it.", sender="kim")
            await page.goto(f"{served.url}/c/{talk.id}")
            await expect(page.locator(".changed")).to_be_visible()
            await page.goto(f"{served.url}/c/{talk.id}/changes")
            answers = ["no", "yes", "yes"]
            page.on(
                "dialog",
                lambda asked: asyncio.ensure_future(asked.accept() if answers.pop(0) == "yes" else asked.dismiss()),
            )
            await page.keyboard.press("u")
            await expect(page.locator(".changes h2")).to_have_count(1)
            assert answers == ["yes", "yes"]
            await page.keyboard.press("u")
            await expect(page.locator(".changes h2").first).to_contain_text("kim took back turn 1")
            assert "old way" in (repository / "login.py").read_text()
            assert not (repository / "long.txt").exists()
            await page.get_by_role("button", name="Redo").click()
            await expect(page.locator(".changes h2").first).to_contain_text("kim brought back turn 1")
            assert (repository / "long.txt").exists()
            await page.goto(f"{served.url}/c/{talk.id}")
            await expect(page.locator("#m2 .between")).to_have_count(2)

    play(story())


@pytest.mark.timeout(600)
@pytest.mark.parametrize(
    ("scheme", "widths"),
    [
        ("light", (1600,)),
        ("dark", (360,)),
        pytest.param("light", (900, 360), marks=pytest.mark.torture),
        pytest.param("dark", (1600, 900), marks=pytest.mark.torture),
    ],
)
def test_axe_finds_nothing_and_nothing_bursts_the_page(
    scheme: Literal["light", "dark"],
    widths: tuple[int, ...],
    tmp_path: Path,
    open_browser: OpenBrowser,
    axe: str,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    path = f"{'a-long-folder/' * 12}{'a-long-name' * 12}.py"
    lines = "\n".join(f"+    value_{number} = {'long ' * 60!r}  # {number}" for number in range(60))
    quoted = f"--- /dev/null\n+++ b/{path}\n@@ -0,0 +1,60 @@ {'def ' * 80}\n{lines}\n"
    wide = record(
        "people",
        after=3,
        files=(FileChange(path=path, kind="added", added=60),),
        patch=f"diff --git a/{path} b/{path}\nnew file mode 100644\n{quoted}",
    )
    monkeypatch.setenv("PATH", str(put_on_path(tmp_path, {"claude": [], "codex": []})), prepend=":")
    team = tmp_path / "team.toml"
    team.write_text(TEAM, encoding="utf-8")
    with SqliteStore(tmp_path / "conversations.db") as store:
        write_changed(store, [wide], team_path=str(team))

    async def story() -> list[str]:
        found = []
        async with site(tmp_path, team) as served, open_browser() as browser:
            await served.hub.resume(ID)
            context = await browser.new_context(color_scheme=scheme, bypass_csp=True, reduced_motion="reduce")
            context.set_default_timeout(60_000)
            page = await context.new_page()
            await served.let_in(page)
            for width in widths:
                await page.set_viewport_size({"width": width, "height": 900})
                for where in ("?split=no", "?split=yes", "?by=member", "?by=all&split=no", "?turns=2..2", "?turns=1"):
                    await page.goto(f"{served.url}/c/{ID}/changes{where}")
                    await page.evaluate("for (const file of document.querySelectorAll('.file')) file.open = true")
                    await all_read(page)
                    found += [f"{where} {width}: {one}" for one in await findings(page, axe)]
                    over = await page.evaluate("document.documentElement.scrollWidth - window.innerWidth")
                    found += [f"{where} {width}: {over} too wide"] if over > 0 else []
                await page.locator("tr.context .number").last.click()
                await expect(page.get_by_label("Your comment")).to_be_visible()
                found += [f"a comment {width}: {one}" for one in await findings(page, axe)]
                await page.goto(f"{served.url}/c/{ID}")
                await expect(page.locator(".between")).to_have_count(4)
                found += [f"chat {width}: {one}" for one in await findings(page, axe)]
        return found

    assert "\n".join(play(story())) == ""


async def all_read(page: Page) -> None:
    """Scroll to what is not read yet until everything is."""
    async with asyncio.timeout(60):
        while await page.locator(".loading").count():
            await page.evaluate("document.querySelector('.loading')?.scrollIntoView()")
            await asyncio.sleep(0.05)


def test_a_thousand_texts_as_paths_and_lines_do_nothing(tmp_path: Path, open_browser: OpenBrowser) -> None:
    texts = [text.replace("\x00", "").replace("\n", " ").replace("\r", " ") for text in payloads()]
    lines = "\n".join(f"+{text}" for text in texts)
    heading = f"@@ -0,0 +1,{len(texts)} @@ <img src=x onerror=window.pwned=1>"
    names = "diff --git a/evil.html b/evil.html\nnew file mode 100644\n--- /dev/null\n+++ b/evil.html"
    patch = f"{names}\n{heading}\n{lines}\n"
    files = [FileChange(path="evil.html", kind="added", added=len(texts))]
    files += [FileChange(path=text, kind="renamed", renamed_from=f"{text} ") for text in texts[:250]]
    evil = record("people", after=3, files=tuple(files), patch=patch)
    with SqliteStore(tmp_path / "conversations.db") as store:
        write_changed(store, [evil])

    async def story() -> None:
        async with site(tmp_path) as served, open_browser() as browser:
            page = await (await browser.new_context()).new_page()
            page.set_default_timeout(60_000)
            witness = Witness(page, served.url)
            await served.let_in(page)
            await page.goto(f"{served.url}/c/{ID}/changes")
            evil = page.locator(".file", has_text="evil.html").first
            await evil.locator("summary").click()
            await expect(evil.locator("tr[data-line]")).to_have_count(MOST_ROWS)
            await evil.get_by_role("button", name="Show more").click()
            await expect(evil.locator("tr[data-line]")).to_have_count(len(texts))
            assert await page.locator(".file").count() > 250
            assert await witness.nothing_happened(page)
            hidden = await page.evaluate(
                "/[\\u202a-\\u202e\\u2066-\\u2069\\u0000-\\u0008\\u001b]/.test(document.body.textContent)"
            )
            assert hidden is False
            await page.goto(f"{served.url}/c/{ID}")
            assert await witness.nothing_happened(page)

    play(story())
