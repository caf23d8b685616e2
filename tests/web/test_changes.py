"""What turns, people and undos changed, in pages and for programs; comments on lines, and who may write them."""

import asyncio
import re
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path

import httpx
import pytest
from msgspec.structs import replace
from tests.view.shop import Shop
from tests.web.changed_files import FILES, ID, LOGIN, TEAM, record, write_changed
from tests.web.test_api import described

from bullpen.conversation.broadcast import Numbered
from bullpen.conversation.events import FilesChanged, event_json
from bullpen.file_changes import MOST_SENT_FILES, ChangeRecord, FileChange
from bullpen.store.sqlite import SqliteStore
from bullpen.testing.site import Site, site
from bullpen.testing.stage import put_on_path
from bullpen.view.change_reading import MOST_PATCHES, change_line
from bullpen.web import patches
from bullpen.web.identity import GUEST, Identity
from bullpen.web.patches import MOST_COLUMNS, MOST_ROWS
from bullpen.web.updates import update

WAIT_SECONDS = 60
API = f"/api/conversations/{ID}"


@asynccontextmanager
async def opened(
    folder: Path, monkeypatch: pytest.MonkeyPatch, who: Identity | None = None, more: Sequence[ChangeRecord] = ()
) -> AsyncIterator[tuple[Site, httpx.AsyncClient]]:
    """Serve the conversation, open here, to a browser of somebody: of the owner, if nobody is named."""
    monkeypatch.setenv("PATH", str(put_on_path(folder, {"claude": [[{"say": "Yes."}]], "codex": []})), prepend=":")
    team = folder / "team.toml"
    team.write_text(TEAM, encoding="utf-8")
    with SqliteStore(folder / "conversations.db") as store:
        write_changed(store, more, team_path=str(team))
    async with (
        site(folder, team) as served,
        httpx.AsyncClient(
            base_url=served.url, timeout=WAIT_SECONDS, follow_redirects=True, headers={"Origin": served.url}
        ) as client,
    ):
        await served.hub.resume(ID)
        address = served.new_url() if who is None else f"{served.url}/enter/{served.keys.new_ticket(who)}"
        assert (await client.post(address)).status_code == 200
        yield served, client


def article(page: str, number: int) -> str:
    found = re.search(rf'<article id="m{number}".*?</article>', page, re.DOTALL)
    assert found
    return found[0]


def test_changes_are_beside_the_messages_they_belong_to(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async def story() -> None:
        async with opened(tmp_path, monkeypatch) as (_, client):
            page = (await client.get(f"/c/{ID}")).text
            assert f'href="/c/{ID}/changes?turns=1">3 files, +2 −1</a>' in article(page, 2)
            assert "Somebody changed 1 file between turns (+1)." in article(page, 2)
            assert "sarah changed 1 file in turn 2 (−3)." in article(page, 3)
            assert "kim took back turn 1: 1 file (+1 −2)." in article(page, 3)
            assert "data-change" not in article(page, 1)
            # What follows a message is in the order in which it happened.
            followed = re.findall(r"turn 2 failed|sarah changed|kim took back", article(page, 3))
            assert followed == ["turn 2 failed", "sarah changed", "kim took back"]
            newer = (await client.get(f"/c/{ID}/newer?after=3")).text
            assert re.findall(r'data-kind="(\w+)"', newer) == ["turn", "people", "turn", "undo"]
            older = (await client.get(f"/c/{ID}/older?before=3")).text
            assert "3 files, +2 −1" in article(older, 2)

    asyncio.run(story())


def test_what_can_be_taken_back_has_a_button(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What was merged, too; but not what a person changed, nor what goes to the files of a turn."""
    changed = record("merge", after=3, turn_id="1", member="max", person="kim", files=FILES)
    more = [
        changed,
        replace(changed, kind="check", check="ruff"),
        replace(changed, kind="redo", about="turn"),
        replace(changed, kind="rewind"),
        replace(changed, kind="redo", about="rewind"),
    ]

    async def story() -> None:
        async with opened(tmp_path, monkeypatch, more=more) as (_, client):
            page = (await client.get(f"/c/{ID}/changes")).text
            sections = re.findall(r'<section class="changes".*?</section>', page, re.DOTALL)
            ways = [re.findall(r'action="/c/[^"]*/do/(\w+)"', one) for one in sections]
            assert ways == [[], [], ["undo"], ["undo"], ["undo"], ["redo"], ["undo"], [], ["undo"]]

    asyncio.run(story())


def test_the_page_of_changes_has_every_file_per_turn_per_member_and_together(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def story() -> None:
        async with opened(tmp_path, monkeypatch) as (_, client):
            here = f"/c/{ID}/changes"

            async def listed(query: str) -> list[tuple[str, list[tuple[str, str]]]]:
                page = (await client.get(f"{here}{query}")).text
                sections = re.findall(r'<section class="changes".*?</section>', page, re.DOTALL)
                return [
                    (
                        re.findall(r"<h2[^>]*><bdi>(.*?)</bdi>", one)[0],
                        re.findall(r"<code><bdi>(.*?)</bdi></code> <span class=\"about\">(.*?)</span>", one),
                    )
                    for one in sections
                ]

            login, moved = ("src/login.py", "+2 −1"), ("old name.txt → new name.txt", "renamed")
            logo, gone, notes = ("logo.png", "new, binary"), ("gone.txt", "deleted, −3"), ("notes.md", "new, +1")
            per_turn = [
                ("kim took back turn 1", [("src/login.py", "+1 −2")]),
                ("turn 2 · sarah", [gone]),
                ("Somebody, between turns", [notes]),
                ("turn 1 · max", [logo, moved, login]),
            ]
            assert await listed("") == per_turn
            assert await listed("?by=nonsense") == per_turn
            assert await listed("?turns=1") == per_turn[3:]
            assert await listed("?turns=1..2") == per_turn[1:]
            assert await listed("?before=3") == per_turn[2:]
            per_member = await listed("?by=member")
            assert [name for name, _ in per_member] == ["max", "Somebody", "sarah", "kim"]
            # What was taken back is again what it was.
            assert await listed("?by=all") == [("All together", [gone, logo, moved, notes])]
            assert (await client.get(f"{here}?turns=99")).status_code == 400

    asyncio.run(story())


def test_what_several_turns_changed_is_one_diff_all_together(tmp_path: Path) -> None:
    shop = Shop(tmp_path)
    shop.play(("ann", "echo four >> a.txt"), ("bob", "sed -i 's/four/FOUR/' a.txt"), ("ann", "echo 1 > new.txt"))

    async def story() -> None:
        async with (
            site(tmp_path, shop.team) as served,
            httpx.AsyncClient(
                base_url=served.url, timeout=WAIT_SECONDS, follow_redirects=True, headers={"Origin": served.url}
            ) as client,
        ):
            await client.post(served.new_url())
            here = f"/c/{shop.id}/changes"
            page = (await client.get(f"{here}?by=all")).text
            assert '<p class="faint">2 files, +2</p>' in page
            addresses = re.findall(r'hx-get="([^"]*)"', page)
            assert addresses == [f"{here}/1-3/{index}?split=no" for index in (0, 1)]
            lines = (await client.get(addresses[0])).text
            assert "FOUR" in lines
            assert "four" not in lines
            of_members = re.findall(r'hx-get="([^"]*)"', (await client.get(f"{here}?by=member")).text)
            assert of_members == [f"{here}/{part}?split=no" for part in ("1/0", "1-3/1", "2/0")]
            for wrong in ("1-3/2", "1-99/0", "1-x/0", "1-/0", "-3/0", "1-2-3/0", "3-1/0"):
                assert (await client.get(f"{here}/{wrong}")).status_code in (400, 404), wrong

    asyncio.run(story())


def test_the_lines_of_a_file_are_escaped_and_nothing_hides_in_them(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def story() -> None:
        async with opened(tmp_path, monkeypatch) as (_, client):
            unified = (await client.get(f"/c/{ID}/changes/1/0?split=no")).text
            assert re.findall(r'<tr class="(\w+)" data-line="(-?\d+)"', unified) == [
                ("context", "8"),
                ("removed", "-9"),
                ("added", "9"),
                ("added", "10"),
                ("context", "11"),
                ("context", "12"),
            ]
            assert "&lt;b&gt;bold&lt;/b&gt; ⟨U+202E⟩" in unified
            assert "a &lt;i&gt; b" in unified
            assert "\u202e" not in unified
            assert '<span class="k-k">return</span>' in unified
            split = (await client.get(f"/c/{ID}/changes/1/0?split=yes")).text
            left, right = split.split('aria-label="After')
            assert "False" in left
            assert "yes" not in left
            assert "False" not in right
            assert left.count("<tr") == right.count("<tr") == 6
            assert "binary" in (await client.get(f"/c/{ID}/changes/1/2")).text
            for nothing in ("1/3", "9/0", "0/0", "x/0", "1/-1", "1/99999999999999999999"):
                assert (await client.get(f"/c/{ID}/changes/{nothing}")).status_code == 404

    asyncio.run(story())


def test_how_lines_are_shown_is_remembered(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async def story() -> None:
        async with opened(tmp_path, monkeypatch) as (_, client):
            here = f"/c/{ID}/changes"
            assert "?split=no" in (await client.get(here)).text
            assert "?split=yes" in (await client.get(f"{here}?split=yes")).text
            assert "?split=yes" in (await client.get(here)).text
            assert 'class="halves"' in (await client.get(f"{here}/1/0")).text
            assert "?split=no" in (await client.get(f"{here}?split=no")).text
            assert 'class="halves"' not in (await client.get(f"{here}/1/0")).text

    asyncio.run(story())


def test_a_long_file_comes_in_parts_and_a_long_line_is_cut(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    count = 2 * MOST_ROWS + 7
    added = "\n".join(f"+line {number}" for number in range(1, count))
    patch = (
        f"diff --git a/long.txt b/long.txt\n--- a/long.txt\n+++ b/long.txt\n@@ -0,0 +1,{count} @@\n"
        f"{added}\n+{'x' * 100_000}\n"
    )
    file = FileChange(path="long.txt", kind="changed", added=count)

    async def story() -> None:
        made = record("people", after=3, files=(file,), patch=patch)
        async with opened(tmp_path, monkeypatch, more=[made]) as (_, client):
            seen, start = [], 0
            while True:
                part = (await client.get(f"/c/{ID}/changes/5/0?from={start}")).text
                seen += re.findall(r'data-line="(\d+)"', part)
                more = re.search(r"from=(\d+)", part)
                if more is None:
                    break
                start = int(more[1])
            assert seen == [str(number) for number in range(1, count + 1)]
            assert f"… {100_000 - MOST_COLUMNS:,} more characters" in part
            assert part.count("x") < MOST_COLUMNS + 1_000
            # It is one of those that a person opens.
            page = (await client.get(f"/c/{ID}/changes")).text
            assert re.findall(r'<details class="file"( open)?>', page)[0] == ""

    asyncio.run(story())


def test_a_patch_is_read_once_for_all_its_files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    patches.files_of.cache_clear()

    async def story() -> None:
        async with opened(tmp_path, monkeypatch) as (_, client):
            for file in range(3):
                await client.get(f"/c/{ID}/changes/1/{file}")

    asyncio.run(story())
    assert patches.files_of.cache_info().misses == 1


def test_a_comment_becomes_a_message_to_who_wrote_the_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    kim = Identity(role="member", person="kim")

    async def story() -> None:
        async with opened(tmp_path, monkeypatch, kim) as (served, client):
            here = f"/c/{ID}/changes/1/0/comment"
            dialog = (await client.get(f"{here}?line=10")).text
            assert "src/login.py:10" in dialog
            form = {"line": "10", "text": "Why a string?", "id": "comment-0001"}
            for _ in range(2):
                assert (await client.post(here, data=form)).status_code == 200
            talk = served.hub.get(ID)
            assert talk is not None
            await asyncio.wait_for(talk.conversation.until_quiet(), WAIT_SECONDS)
            messages = (await client.get(f"{API}/messages?after=3")).json()
            said = messages[0]["message"]
            assert said["speaker"]["roleId"] == "kim"
            assert said["content"].startswith("@max `src/login.py:10`\n\n```\n")
            assert said["content"].endswith("\n```\n\nWhy a string?")
            assert said["routing"]["resolvedAddressees"] == ["max"]
            assert [one["message"]["content"] for one in messages[1:]] == ["Yes."]
            for wrong in ({"line": "99"}, {"line": "x"}, {"line": ""}, {"text": "  "}):
                assert (await client.post(here, data={**form, "id": "comment-0002", **wrong})).status_code in (400, 404)
            assert (await client.post(here, data={**form, "sender": "max"})).status_code in (400, 403, 404)

    asyncio.run(story())


@pytest.mark.parametrize("who", [GUEST, Identity(role="viewer", person="kim"), Identity(role="member", person="lee")])
def test_who_only_reads_sees_the_lines_and_cannot_comment(
    who: Identity, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def story() -> None:
        async with opened(tmp_path, monkeypatch, who) as (_, client):
            page = (await client.get(f"/c/{ID}/changes")).text
            assert "data-comments" not in page
            assert (await client.get(f"/c/{ID}/changes/1/0")).status_code == 200
            here = f"/c/{ID}/changes/1/0/comment"
            assert (await client.get(f"{here}?line=10")).status_code == 403
            assert (await client.post(here, data={"line": "10", "text": "x"})).status_code == 403

    asyncio.run(story())


def test_the_api_lists_changes_as_described(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = "/api/conversations/{id}/changes"

    async def story() -> None:
        async with opened(tmp_path, monkeypatch) as (_, client):
            everything = await client.get(f"{API}/changes")
            assert described("GET", path, everything)
            assert [(one["number"], one["kind"]) for one in everything.json()] == [
                (1, "turn"),
                (2, "people"),
                (3, "turn"),
                (4, "undo"),
            ]
            assert not any("patch" in one["changes"] for one in everything.json())
            about = await client.get(f"{API}/changes", params={"turn": "1", "patch": "true"})
            assert described("GET", path, about)
            assert [one["number"] for one in about.json()] == [1, 4]
            assert about.json()[0]["changes"]["patch"] == LOGIN
            paged = await client.get(f"{API}/changes", params={"after": 1, "limit": 2})
            assert [one["number"] for one in paged.json()] == [2, 3]
            for wrong, status in (("turn=99", 404), ("patch=1", 400), ("after=x", 400), ("limit=0", 400)):
                refused = await client.get(f"{API}/changes?{wrong}")
                assert refused.status_code == status
                assert described("GET", path, refused)

    asyncio.run(story())


def test_the_api_gives_at_most_so_many_patches_at_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = FileChange(path="a.txt", kind="changed", added=1)

    async def story() -> None:
        made = record("people", after=3, files=(file,), patch="diff --git a/a.txt b/a.txt\n")
        async with opened(tmp_path, monkeypatch, more=[made] * MOST_PATCHES) as (_, client):
            got = (await client.get(f"{API}/changes?patch=true&limit=1000")).json()
            assert [one["number"] for one in got] == list(range(1, MOST_PATCHES + 1))
            rest = (await client.get(f"{API}/changes?patch=true&after={MOST_PATCHES}")).json()
            assert [one["number"] for one in rest] == list(range(MOST_PATCHES + 1, MOST_PATCHES + 5))

    asyncio.run(story())


def test_of_many_files_the_first_are_sent_and_all_can_be_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    files = tuple(
        FileChange(path=f"src/{number:05}.py", kind="changed", added=2, removed=1) for number in range(12_000)
    )
    made, path = record("people", after=3, files=files), "/api/conversations/{id}/changes/{number}/files"

    async def story() -> None:
        async with opened(tmp_path, monkeypatch, more=[made]) as (_, client):
            listed = await client.get(f"{API}/changes?after=4")
            assert described("GET", "/api/conversations/{id}/changes", listed)
            (sent,) = listed.json()
            assert sent["changes"]["total"] == {"files": 12_000, "added": 24_000, "removed": 12_000}
            assert [one["path"] for one in sent["changes"]["files"]] == [one.path for one in files[:MOST_SENT_FILES]]
            parts = [await client.get(f"{API}/changes/5/files?after={after}") for after in (0, 10_000, 12_000)]
            assert all(described("GET", path, part) for part in parts)
            assert [one["path"] for part in parts for one in part.json()] == [one.path for one in files]
            assert len((await client.get(f"{API}/changes/5/files?limit=7")).json()) == 7
            for wrong, status in (("6/files", 404), ("x/files", 404), ("5/files?after=x", 400)):
                assert (await client.get(f"{API}/changes/{wrong}")).status_code == status
            page = (await client.get(f"/c/{ID}")).text
            assert "changed 12,000 files between turns (+24,000 −12,000)" in page

    asyncio.run(story())


def test_an_event_does_not_grow_with_the_number_of_files() -> None:
    def event(count: int) -> FilesChanged:
        files = tuple(FileChange(path=f"src/{number}.py", kind="changed", added=2) for number in range(count))
        return FilesChanged.of(record("turn", turn_id="1", member="max", after=3, files=files))

    few, many = event(MOST_SENT_FILES), event(50_000)

    assert few.record.changes.total is None
    assert len(event_json(many)) < len(event_json(few)) + 100
    lines = [change_line(one.record) for one in (few, many)]
    assert [line and line.short for line in lines] == [f"{MOST_SENT_FILES} files, +400", "50,000 files, +100,000"]


def test_the_patch_of_a_turn_is_a_file_that_git_reads(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async def story() -> None:
        async with opened(tmp_path, monkeypatch) as (_, client):
            patch = await client.get(f"{API}/turns/1/patch")
            assert patch.headers["content-type"] == "text/x-diff; charset=utf-8"
            assert patch.text == LOGIN
            assert (await client.get(f"{API}/turns/2/patch")).text == ""
            assert (await client.get(f"{API}/turns/99/patch")).status_code == 404

    asyncio.run(story())


def test_pages_are_sent_what_changes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = FileChange(path="<b>.txt", kind="changed", added=5)
    made = record("turn", turn_id="<i>", member="max", after=3, files=(file,))

    async def story() -> None:
        async with opened(tmp_path, monkeypatch) as (served, _):
            talk = served.hub.get(ID)
            assert talk is not None
            sent = await update(Numbered(1, FilesChanged.of(made)), talk.conversation)
            assert sent is not None
            assert sent.event == "changed"
            assert b"1 file, +5" in sent.data
            assert b"<i>" not in sent.data
            nothing = FilesChanged.of(record("turn", turn_id="2", after=3, files=()))
            assert await update(Numbered(2, nothing), talk.conversation) is None

    asyncio.run(story())
