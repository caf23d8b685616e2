"""The example in docs/telemetry.md: a collector in a process of its own, and the demo."""

import os
import re
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs" / "telemetry.md"


def test_the_collector_of_the_page_prints_the_turns_of_the_demo() -> None:
    printed = ""
    command = [sys.executable, str(ROOT / "examples" / "collector.py"), "0"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as collector:
        try:
            assert collector.stdout is not None
            name, _, url = collector.stdout.readline().strip().partition("=")
            demo = [sys.executable, "-m", "bullpen", "demo", "--fast"]
            subprocess.run(demo, check=True, capture_output=True, env={**os.environ, name: url})
        finally:
            collector.terminate()
            printed = collector.communicate()[0]

    (shown,) = re.findall(r"```text\n(.+? s  turn ben.*?)```", PAGE.read_text(encoding="utf-8"), re.DOTALL)
    assert names(shown) in names(printed)
    assert names(printed).count("turn ") == 5


def names(printed: str) -> str:
    return re.sub(r" +\d+\.\d+ s", "", printed)


def test_the_page_names_every_metric_and_every_attribute() -> None:
    page = PAGE.read_text(encoding="utf-8")
    source = "".join(
        (ROOT / "src" / "bullpen" / "telemetry" / name).read_text(encoding="utf-8")
        for name in ("traces.py", "metrics.py")
    )
    used = set(re.findall(r'"((?:gen_ai|bullpen)[._][\w.]+)"', source))
    asked_for = {"gen_ai.input.messages", "gen_ai.output.messages"}
    asked_for |= {"gen_ai.tool.call.arguments", "gen_ai.tool.call.result"}
    labels = {"gen_ai_agent_name", "bullpen_agent_type", "gen_ai_response_model"}

    assert len(used) > 20
    assert {name for name in used - asked_for - labels if f"`{name}" not in page} == set()
