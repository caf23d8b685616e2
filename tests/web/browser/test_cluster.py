"""Two nodes and two workers: a browser at one node does not lose a conversation whose node is killed."""

import asyncio
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest
from playwright.async_api import Browser, Page, expect
from tests.web.browser.stage import OpenBrowser, play

pytest.importorskip("psycopg", reason="the extra bullpen-chat[cluster] is not installed")
pytest.importorskip("procrastinate", reason="the extra bullpen-chat[cluster] is not installed")

from tests.cluster.databases import database
from tests.cluster.processes import Processes
from tests.cluster.serving import ServingNode, start_node
from tests.cluster.stage import WorkerStage, two_workers
from tests.store.postgres.server import needs_postgres

from bullpen.cluster.schema import prepare
from bullpen.store.postgres.store import PostgresStore

TYPED = ["Hi max.", "And me?"]
DRAFT = "What I have not sent"


@pytest.fixture
def processes(tmp_path: Path) -> Iterator[Processes]:
    """Processes that are ended after the test."""
    started = Processes(tmp_path)
    yield started
    started.end()


@pytest.fixture
def stage(tmp_path: Path, processes: Processes) -> Iterator[WorkerStage]:
    with database() as url:
        prepare(url)
        yield WorkerStage(tmp_path, url, processes)


async def signed_in(node: ServingNode, browser: Browser) -> Page:
    """Return a page of an owner at a node."""
    async with node.client() as client:
        made = (await client.post("/api/invitations", json={"role": "owner"})).json()
    page = await (await browser.new_context()).new_page()
    page.set_default_timeout(30_000)
    await page.goto(made["url"])
    await page.get_by_role("button", name="Sign in").click()
    await page.wait_for_url(f"{node.url}/")
    return page


async def type_in(page: Page, text: str) -> None:
    """Type a message and send it, once."""
    await page.get_by_label("Your message").fill(text)
    await page.get_by_label("Your message").press("Enter")


def stored(stage: WorkerStage, conversation_id: str) -> list[tuple[str, str]]:
    with PostgresStore(stage.url) as store:
        assert store.fsck(conversation_id) == []
        messages = store.messages(conversation_id)
    return [(one.message.speaker.role_id, one.message.content) for one in messages]


async def until_done(stage: WorkerStage, conversation_id: str) -> None:
    """Wait until every turn has ended: the page may show none between two of them."""
    with PostgresStore(stage.url) as store:
        while any(turn.state in ("queued", "running") for turn in store.turns(conversation_id)):
            await asyncio.sleep(0.01)


@needs_postgres
def test_a_conversation_on_two_workers_survives_its_node_and_nobody_types_anything_twice(
    stage: WorkerStage, processes: Processes, open_browser: OpenBrowser
) -> None:
    team, other = two_workers(stage, processes)
    a = start_node(processes, stage.url, "a", str(team))
    b = start_node(processes, stage.url, "b")

    async def story() -> None:
        async with httpx.AsyncClient(base_url=a.url, headers=a.headers, timeout=30) as client:
            one = (await client.post("/api/conversations")).json()["id"]
        async with open_browser() as browser:
            page = await signed_in(b, browser)
            await page.goto(f"{b.url}/c/{one}")
            await type_in(page, TYPED[0])
            await expect(page.locator("#m1 .body")).to_have_text(TYPED[0])
            await expect(page.locator("#live article")).to_contain_text("Hello")

            a.process.kill()
            await type_in(page, TYPED[1])
            await expect(page.locator("#messages")).to_contain_text(TYPED[1])
            await expect(page.get_by_label("Your message")).to_have_value("")
            await page.get_by_label("Your message").fill(DRAFT)

            stage.go.touch()
            await expect(page.locator("#messages")).to_contain_text("Hello lea.")
            await expect(page.locator("#messages")).to_contain_text("Hello max, hello kim.")
            await expect(page.locator("#live > article")).to_have_count(0)
            await expect(page.get_by_label("Your message")).to_have_value(DRAFT)
            await until_done(stage, one)
            said = stored(stage, one)
            await expect(page.locator("#messages > article")).to_have_count(len(said))
        assert [content for who, content in said if who == "kim"] == TYPED
        assert len([content for who, content in said if who == "max"]) == len(stage.started())
        assert len([content for who, content in said if who == "lea"]) == len(other.started())
        assert said.count(("max", "Hello lea. [NEXT: lea]")) == len(stage.started())

    play(story())
