"""How large a session may become before a new one begins."""

from pathlib import Path

import pytest

from bullpen.agents.registry import agent_spec
from bullpen.conversation.member_agent import MemberAgent
from bullpen.conversation.session_rules import why_not
from bullpen.memory import FileMark, Memory
from bullpen.team.team import Member


@pytest.mark.parametrize(
    ("cli", "window", "memory_tokens", "most"),
    [
        ("claude", 200_000, None, 150_000),
        ("claude", 1_000_000, None, 750_000),
        ("claude", 0, None, 150_000),
        ("codex", 0, None, 200_000),
        ("qwen", 0, None, 150_000),
        ("claude", 1_000_000, 90_000, 90_000),
    ],
)
def test_it_is_what_the_team_file_says_or_fits_into_the_model(
    cli: str, window: int, memory_tokens: int | None, most: int, tmp_path: Path
) -> None:
    spec = agent_spec(cli)
    assert spec.sessions is not None
    agent = MemberAgent(
        member=Member(name="max", type="ai", agent=cli, memory_tokens=memory_tokens), spec=spec, folder=tmp_path
    )

    def reason(tokens: int) -> str:
        assert spec.sessions is not None
        memory = Memory(
            session_id="0f9d1c35-6a86-4b5e-9c3a-3f4d5e6f7a8b",
            began_at=1,
            since=1,
            seen_to=1,
            agent=spec.name,
            folder=str(tmp_path),
            visibility="all",
            file=FileMark(size=4 * tokens, digest=""),
            tokens=tokens,
            window=window,
        )
        return why_not(memory, agent, spec.sessions)

    assert reason(most) == ""
    assert reason(most + 1_000).startswith("its session had grown to ")
