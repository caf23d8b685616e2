"""Metrics: numbers of all conversations that are open here, as Prometheus reads them."""

from collections.abc import Iterator

from prometheus_client import CollectorRegistry, Counter, Histogram, ProcessCollector
from prometheus_client.core import GaugeMetricFamily, InfoMetricFamily
from prometheus_client.exposition import choose_encoder
from prometheus_client.metrics_core import Metric
from prometheus_client.registry import Collector

from bullpen import __version__
from bullpen.conversation.conversation import Conversation
from bullpen.team.team import Member
from bullpen.telemetry import words
from bullpen.telemetry.turns import TurnRecord

SECOND = 1_000_000_000
# Agents work for seconds or for an hour.
RUN_SECONDS = (1, 2, 5, 10, 20, 30, 60, 120, 300, 600, 1200, 1800, 3600, 7200)
TOOL_SECONDS = (0.1, 0.5, 1, 5, 10, 30, 60, 120, 300, 600, 1800)
PART_SECONDS = (0.005, 0.02, 0.1, 0.5, 2, 10, 60, 300, 1800, 7200)
# As the GenAI conventions say.
TOKENS = tuple(4**power for power in range(14))
MOST_VALUES = 100
OTHER = "other"

MEMBER = ("gen_ai_agent_name", "bullpen_agent_type")
MODEL = (*MEMBER, "gen_ai_response_model")


class FewValues:
    """The values of a label: each one is a series that Prometheus keeps, so there are not more than a hundred."""

    def __init__(self) -> None:
        self._known: set[str] = set()

    def __call__(self, given: str) -> str:
        """Return the value, or "other" if there are too many already."""
        value = words.name(given)
        if value not in self._known and len(self._known) >= MOST_VALUES:
            return OTHER
        self._known.add(value)
        return value


class Metrics:
    """The numbers of one server."""

    def __init__(self) -> None:
        self.conversations: set[Conversation] = set()
        """Those that are open."""
        self._registry = CollectorRegistry()
        self._members, self._types, self._models = FewValues(), FewValues(), FewValues()
        self._runs = Histogram(
            "gen_ai_invoke_agent_duration_seconds",
            "How long agents worked in a turn.",
            (*MODEL, "bullpen_turn_state", "error_type"),
            buckets=RUN_SECONDS,
            registry=self._registry,
        )
        self._tokens = Histogram(
            "gen_ai_client_token_usage",
            "Tokens that a turn used, as its agent reports them; input includes what was cached.",
            (*MODEL, "gen_ai_token_type"),
            buckets=TOKENS,
            registry=self._registry,
        )
        self._tools = Histogram(
            "gen_ai_execute_tool_duration_seconds",
            "How long tools took that agents used.",
            (*MEMBER, "error_type"),
            buckets=TOOL_SECONDS,
            registry=self._registry,
        )
        self._parts = Histogram(
            "bullpen_turn_part_duration_seconds",
            "How long turns took besides their agents: route, queue, prompt, store.",
            ("part",),
            buckets=PART_SECONDS,
            registry=self._registry,
        )
        self._cost = Counter(
            "bullpen_cost_usd",
            "Money that agents report, or an estimate from their tokens.",
            (*MODEL, "bullpen_is_estimate"),
            registry=self._registry,
        )
        self._registry.register(_Now(self.conversations))
        ProcessCollector(registry=self._registry)

    def page(self, accept: str) -> tuple[bytes, str]:
        """Return everything, in a form that is accepted, and the name of that form."""
        encode, kind = choose_encoder(accept)
        return encode(self._registry), kind

    def add(self, record: TurnRecord, member: Member) -> None:
        """Count a turn that has ended."""
        who = (self._members(member.name), self._types(words.agent_type(member)))
        model = (*who, self._models(record.model or member.model or ""))
        self._runs.labels(*model, record.state, record.error_type).observe(_seconds(record.ran_at, record.ended_at))
        for tool in record.tools:
            error = "tool_failed" if tool.failed else ""
            self._tools.labels(*who, error).observe(_seconds(tool.began_at, tool.ended_at))
        if record.usage is not None:
            self._tokens.labels(*model, "input").observe(record.usage.input_tokens)
            self._tokens.labels(*model, "output").observe(record.usage.output_tokens)
            is_estimate = str(record.usage.is_estimate).lower()
            self._cost.labels(*model, is_estimate).inc(max(0.0, record.usage.cost_usd or 0.0))
        self._add_parts(record)

    def _add_parts(self, record: TurnRecord) -> None:
        parts = {
            "route": (record.said_at, record.queued_at),
            "queue": (record.queued_at, record.began_at),
            "prompt": (record.began_at, record.ran_at),
            "store": (record.ended_at, record.stored_at),
        }
        for part, (began_at, ended_at) in parts.items():
            if began_at:
                self._parts.labels(part).observe(_seconds(began_at, ended_at))


class _Now(Collector):
    """What is open, running and waiting at the moment it is asked for."""

    def __init__(self, conversations: set[Conversation]) -> None:
        self._conversations = conversations

    def collect(self) -> Iterator[Metric]:
        """Yield the numbers."""
        open_ones = self._conversations
        yield InfoMetricFamily("bullpen", "The version.", {"version": __version__})
        yield GaugeMetricFamily("bullpen_conversations_open", "Open conversations.", len(open_ones))
        paused = sum(one.paused is not None for one in open_ones)
        yield GaugeMetricFamily("bullpen_conversations_paused", "Of these, those that wait for a person.", paused)
        running = sum(len(one.running) for one in open_ones)
        yield GaugeMetricFamily("bullpen_turns_running", "Turns that run.", running)
        waiting = sum(len(one.waiting) for one in open_ones)
        yield GaugeMetricFamily("bullpen_turns_waiting", "Turns in the queues.", waiting)


def _seconds(began_at: int, ended_at: int) -> float:
    return max(0, ended_at - began_at) / SECOND
