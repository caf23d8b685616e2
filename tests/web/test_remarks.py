"""What an agent only announced between tools is folded on the page; exports and the API have the whole reply."""

import asyncio
import os
from html.parser import HTMLParser
from pathlib import Path

import httpx
import pytest

from bullpen.testing.site import site
from bullpen.testing.stage import Script, put_on_path

TOOL = {"tool": {"name": "Bash", "input": {"command": "ls"}, "output": "ok"}}
TEXTS = ("I'll look at the tests now.", "Let me run <them>.", "Let me run them.", "I'll mend them.")
LAST = "It was the clock."
SCRIPT: Script = [*(step for text in TEXTS for step in ({"say": text}, TOOL)), {"say": LAST}]
WHOLE = "\n\n".join((*TEXTS, LAST))
PLACES = [29, 49, 67, 84]


class Body(HTMLParser):
    """The text of a page, with what is folded in braces."""

    def __init__(self) -> None:
        super().__init__()
        self.text = ""

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Note where something is folded."""
        self.text += "{" if (tag, attrs) == ("details", [("class", "remarks")]) else ""

    def handle_endtag(self, tag: str) -> None:
        """Note where that ends."""
        self.text += "}" if tag == "details" else ""

    def handle_data(self, data: str) -> None:
        """Add words."""
        self.text += data.replace("\n", " ")


def test_the_page_folds_remarks_and_nothing_else_does(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", f"{put_on_path(tmp_path, {'claude': [SCRIPT]})}{os.pathsep}{os.environ['PATH']}")
    team = tmp_path / "team.toml"
    team.write_text('[[member]]\nname = "kim"\n[[member]]\nname = "max"\nagent = "claude"\n')

    async def story() -> None:
        async with (
            site(tmp_path, team) as served,
            httpx.AsyncClient(base_url=served.url, headers=served.headers, timeout=60) as client,
        ):
            conversation = (await served.hub.begin()).conversation
            await conversation.say("Look.")
            await conversation.until_quiet()
            here = f"/c/{conversation.id}"
            page = (await client.get(here)).text.partition('<article id="m2"')[2].partition('<div class="body"')[2]
            body = Body()
            body.feed(f"<div{page.partition('<footer')[0]}")
            assert " ".join(body.text.split()) == (
                "I'll look at the tests now. Let me run <them>. "
                "{2 remarks while it worked: Let me run them.Let me run them. I'll mend them. }It was the clock."
            )
            assert (await client.get(f"{here}/messages/2")).text == WHOLE
            for kind in ("md", "html"):
                exported = (await client.get(f"{here}/export/{kind}")).text
                assert "remarks" not in exported
                assert [text for text in (TEXTS[2], TEXTS[3], LAST) if exported.count(text) != 1] == []
            *_, reply = (await client.get(f"/api/conversations/{conversation.id}/messages")).json()
            assert (reply["message"]["content"], reply["message"]["extra"]) == (WHOLE, {"textsAt": PLACES})

    asyncio.run(story())
