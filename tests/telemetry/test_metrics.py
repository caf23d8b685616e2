"""Metrics: real servers, asked as Prometheus asks, and read with its own parser."""

import asyncio
import socket
import subprocess
import sys
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path

import httpx
import pytest
from prometheus_client import Metric, parser
from prometheus_client.openmetrics import parser as openmetrics
from prometheus_client.samples import Sample
from tests import forked
from tests.conversation.stage import FAIL, HANG, Stage, tell, until_at_work

from bullpen.cli import main
from bullpen.conversation.conversation import Conversation
from bullpen.routing.queue import WaitingTurn
from bullpen.team.team import Member
from bullpen.telemetry.metrics import MOST_VALUES, Metrics
from bullpen.telemetry.turns import MILLISECOND, ToolCall, TurnRecord
from bullpen.testing.site import Site, site
from bullpen.turn_events import Usage
from bullpen.web.identity import GUEST

WAIT_SECONDS = 60
OPENMETRICS = "application/openmetrics-text; version=1.0.0"
HOSTILE = ['say "hi"\n', "李 雷", "back\\slash", "{a=1}", "half \ud800", "sk-1234567890abcdef"]


@pytest.fixture(autouse=True)
def without_traces(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OTEL_TRACES_EXPORTER", "none")


@asynccontextmanager
async def serving(stage: Stage) -> AsyncIterator[tuple[Site, Conversation]]:
    async with site(stage.folder / "data", stage.write()) as served:
        opened = await served.hub.begin()
        yield served, opened.conversation


async def ask(served: Site, token: str = "", **headers: str) -> httpx.Response:
    headers["Authorization"] = f"Bearer {token or served.keys.metrics_token}"
    async with httpx.AsyncClient(timeout=WAIT_SECONDS) as client:
        return await client.get(f"{served.url}/metrics", headers=headers)


async def scrape(served: Site) -> list[Sample]:
    return samples((await ask(served)).text)


def samples(page: str) -> list[Sample]:
    return [sample for family in parser.text_string_to_metric_families(page) for sample in family.samples]


def read_openmetrics(page: str) -> list[Metric]:
    return list(openmetrics.text_string_to_metric_families(page))  # type: ignore[no-untyped-call]


def value(found: list[Sample], name: str, **labels: str) -> float:
    fitting = [one.value for one in found if one.name == name and labels.items() <= one.labels.items()]
    return sum(fitting)


def test_what_turns_took_and_used_is_counted(stage: Stage) -> None:
    async def story() -> tuple[list[Sample], str, Conversation]:
        (stage.folder / "data").mkdir()
        async with serving(stage) as (served, conversation):
            await tell(conversation, "Which fruit?")
            return await scrape(served), (await ask(served)).text, conversation

    found, page, conversation = asyncio.run(story())

    claude = {"gen_ai_agent_name": "a", "bullpen_agent_type": "claude-code"}
    ran = "gen_ai_invoke_agent_duration_seconds"
    assert value(found, f"{ran}_count", **claude, bullpen_turn_state="done", error_type="") == 1
    assert value(found, f"{ran}_count", gen_ai_agent_name="b", bullpen_agent_type="command") == 1
    assert value(found, "gen_ai_client_token_usage_sum", **claude, gen_ai_token_type="input") == 1200
    assert value(found, "gen_ai_client_token_usage_sum", **claude, gen_ai_token_type="output") == 34
    assert value(found, "bullpen_cost_usd_total", **claude, bullpen_is_estimate="false") == 0.5
    assert value(found, "gen_ai_execute_tool_duration_seconds_count", **claude) == 1
    for part in ("route", "queue", "prompt", "store"):
        assert value(found, "bullpen_turn_part_duration_seconds_count", part=part) == 2
    assert value(found, "bullpen_conversations_open") == 1
    assert value(found, "process_resident_memory_bytes") > 0
    # Every conversation and every message would be a series of its own.
    for word in (conversation.id, "Bash", "fruit", "Apricots", "Cherries"):
        assert word not in page
    labels = {label for sample in found for label in sample.labels}
    assert labels == {
        *("gen_ai_agent_name", "bullpen_agent_type", "gen_ai_response_model", "bullpen_turn_state", "error_type"),
        *("gen_ai_token_type", "part", "le", "version", "bullpen_is_estimate"),
    }


def test_what_runs_and_waits_is_as_it_is_now(stage: Stage) -> None:
    stage.agent("a", HANG)
    stage.agent("b", FAIL)
    (stage.folder / "data").mkdir()

    def now(found: list[Sample]) -> list[float]:
        names = ("conversations_open", "conversations_paused", "turns_running", "turns_waiting")
        return [value(found, f"bullpen_{name}") for name in names]

    async def story() -> None:
        async with serving(stage) as (served, conversation):
            assert now(await scrape(served)) == [1, 0, 0, 0]
            await conversation.say("[NEXT: a, b]")
            await until_at_work(conversation, "a")
            assert now(await scrape(served)) == [1, 0, 1, 1]
            await conversation.cancel()
            found = await scrape(served)
            assert now(found) == [1, 1, 0, 1]
            ended = "gen_ai_invoke_agent_duration_seconds_count"
            assert value(found, ended, bullpen_turn_state="cancelled", error_type="cancelled") == 1
            await tell(conversation, "[NEXT: b]")
            assert value(await scrape(served), ended, bullpen_turn_state="failed", error_type="crashed") == 1
            await served.hub.release(conversation.id)
            assert now(await scrape(served)) == [0, 0, 0, 0]

    asyncio.run(story())


def test_only_those_with_a_key_may_read_it(stage: Stage) -> None:
    (stage.folder / "data").mkdir()

    async def story() -> None:
        async with serving(stage) as (served, _), httpx.AsyncClient(timeout=WAIT_SECONDS) as client:
            assert (await client.get(f"{served.url}/metrics")).status_code == 401
            for token in (served.keys.metrics_token, served.keys.token, served.keys.new_token(GUEST)):
                assert (await ask(served, token)).status_code == 200
            assert (await ask(served, served.keys.metrics_token[:-1])).status_code == 401
            headers = {"Authorization": f"Bearer {served.keys.metrics_token}"}
            for path in ("/", "/api/conversations", "/people", "/metrics/", "/metricsx"):
                assert (await client.get(f"{served.url}{path}", headers=headers)).status_code == 401
            elsewhere = {**headers, "Host": "example.com"}
            assert (await client.get(f"{served.url}/metrics", headers=elsewhere)).status_code == 421
            assert (await client.post(f"{served.url}/metrics", headers=headers)).status_code == 405

    asyncio.run(story())


def test_without_telemetry_the_page_says_how_to_turn_it_on(stage: Stage, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("BULLPEN_TELEMETRY")
    (stage.folder / "data").mkdir()

    async def story() -> httpx.Response:
        async with serving(stage) as (served, _):
            return await ask(served)

    answer = asyncio.run(story())

    assert answer.status_code == 404
    assert "BULLPEN_TELEMETRY=1" in answer.text


def test_prometheus_gets_the_form_that_it_asks_for(stage: Stage) -> None:
    (stage.folder / "data").mkdir()

    async def story() -> tuple[httpx.Response, httpx.Response]:
        async with serving(stage) as (served, conversation):
            await tell(conversation, "Which fruit?")
            return await ask(served), await ask(served, Accept=OPENMETRICS)

    plain, newer = asyncio.run(story())

    assert plain.headers["content-type"].startswith("text/plain; version=")
    assert newer.headers["content-type"].startswith("application/openmetrics-text")
    families = {family.name for family in read_openmetrics(newer.text)}
    assert "gen_ai_invoke_agent_duration_seconds" in families


def test_two_servers_count_each_their_own(stage: Stage, tmp_path: Path) -> None:
    other = Stage(tmp_path / "other")
    other.people_and_agents("kim", "c")
    for one in (stage, other):
        (one.folder / "data").mkdir(parents=True)

    async def story() -> tuple[list[Sample], list[Sample]]:
        async with AsyncExitStack() as stack:
            (first, here), (second, there) = [await stack.enter_async_context(serving(one)) for one in (stage, other)]
            await asyncio.gather(tell(here, "Which fruit?"), tell(there, "Hello, c."))
            assert (await ask(first, second.keys.metrics_token)).status_code == 401
            return await scrape(first), await scrape(second)

    first, second = asyncio.run(story())

    assert names(first) == {"a", "b"}
    assert names(second) == {"c"}


def names(found: list[Sample]) -> set[str]:
    return {one.labels["gen_ai_agent_name"] for one in found if "gen_ai_agent_name" in one.labels}


def record(model: str) -> TurnRecord:
    tool = ToolCall(id="1", name="x", input={}, began_at=2 * MILLISECOND, ended_at=3 * MILLISECOND)
    return TurnRecord(
        conversation_id="quiet-river",
        turn=WaitingTurn(id="1", member="a", message_id="msg-1"),
        began_at=MILLISECOND,
        ran_at=2 * MILLISECOND,
        ended_at=4 * MILLISECOND,
        stored_at=5 * MILLISECOND,
        model=model,
        usage=Usage(input_tokens=1, output_tokens=1),
        state="done",
        tools=[tool],
    )


@pytest.mark.parametrize("form", ["text/plain", OPENMETRICS])
def test_names_can_be_anything(form: str) -> None:
    metrics = Metrics()

    for hostile in HOSTILE:
        metrics.add(record(hostile), Member(name=hostile, type="ai", agent=hostile, command=("x",)))

    page = metrics.page(form)[0].decode()
    families = read_openmetrics(page) if form == OPENMETRICS else parser.text_string_to_metric_families(page)
    found = [sample for family in families for sample in family.samples]
    assert names(found) == {'say "hi" ', "李 雷", "back\\slash", "{a=1}", "half \ufffd", "[secret]"}


def test_there_are_never_too_many_series() -> None:
    metrics = Metrics()

    for number in range(3 * MOST_VALUES):
        metrics.add(record(f"model {number}"), Member(name="a", type="ai", agent="claude"))

    found = samples(metrics.page("")[0].decode())
    counted = [one for one in found if one.name == "gen_ai_invoke_agent_duration_seconds_count"]
    assert len(counted) == MOST_VALUES + 1
    assert (
        value(counted, "gen_ai_invoke_agent_duration_seconds_count", gen_ai_response_model="other") == 2 * MOST_VALUES
    )


def test_serve_writes_a_token_that_reads_only_the_metrics(stage: Stage) -> None:
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    token = stage.folder / "token"
    command = [
        sys.executable,
        "-m",
        "bullpen",
        "serve",
        str(stage.write()),
        "--trust",
        "--no-open",
        "--port",
        str(port),
    ]
    command += ["--metrics-token-file", str(token), "--db", str(stage.folder / "c.db")]
    with forked.start(command, stdout=subprocess.PIPE, text=True, cwd=stage.folder) as process:
        try:
            assert process.stdout is not None
            assert "bullpen serves" in process.stdout.readline()
            headers = {"Authorization": f"Bearer {token.read_text(encoding='utf-8').strip()}"}
            answers = [
                httpx.get(f"http://127.0.0.1:{port}{path}", headers=headers, timeout=WAIT_SECONDS)
                for path in ("/metrics", "/api/conversations")
            ]
        finally:
            process.terminate()
            process.communicate()

    assert [answer.status_code for answer in answers] == [200, 401]
    assert token.stat().st_mode & 0o777 == 0o600


def test_such_a_token_without_metrics_is_a_mistake(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.delenv("BULLPEN_TELEMETRY")

    assert main(["serve", "--metrics-token-file", "token"]) == 2

    assert "needs BULLPEN_TELEMETRY=1" in capsys.readouterr().err
