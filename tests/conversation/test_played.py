"""What is stored of a turn that was played inside the test's process is what is stored of one in its own."""

import json
import re
from pathlib import Path
from typing import Any

import pytest
from msgspec import to_builtins
from tests.conversation.stage import FAIL, Stage, tell

SCRIPTS: dict[str, Any] = {
    "a": [{"say": "I look at it. ", "chunk": 4}, {"say": "[NEXT: b]"}],
    "b": [{"tool": {"name": "Bash", "input": {"command": "ls"}, "output": "hi"}}, {"say": "Done. [NEXT: c]"}],
    "c": FAIL,
}


async def stored(stage: Stage) -> Any:
    """Return all that a story leaves in the store, without what differs each time."""
    async with stage.open() as conversation:
        await tell(conversation, "Go [NEXT: a]")
        turns = await conversation.read(lambda store, id_: store.turns(id_))
        records = await conversation.read(lambda store, id_: [store.record(id_, turn.id) for turn in turns])
        said = [one.message for one in await conversation.messages(limit=99)]
        recorded = [{**to_builtins(one), "stream": one.stream.decode()} for one in records if one]
        text = json.dumps([to_builtins([said, turns, conversation.progress]), recorded], sort_keys=True)
    text = text.replace(str(stage.folder), "FOLDER").replace(', "--process"', "")
    text = re.sub(r"[0-9a-f]{8}-[0-9a-f-]{27}|(?:toolu|msg)_[0-9a-f]+|bullpen-\w{8}/", "ID", text)
    text = re.sub(r"\d{4}-\d\d-\d\dT[\d:.]+Z", "TIME", text)
    return json.loads(re.sub(r'((?:_at|ms|seconds|since|timestamp)\\*": ?)[0-9.]+', r"\1 0", text))


async def test_the_same_is_stored(played: None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("BULLPEN_HOME", str(tmp_path / "home"))
    left = []
    for kind in ("process", "inside"):
        own = Stage(tmp_path / kind)
        own.folder.mkdir()
        with monkeypatch.context() as patch:
            own.put_claude_on_the_path(patch)
            own.person("kim")
            for name, script in SCRIPTS.items():
                own.agent(name, script, **({"agent": "claude"} if name == "b" else {}))
                if kind == "process":
                    own.process(name)
            left.append(await stored(own))
    assert left[0] == left[1]
