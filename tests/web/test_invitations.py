"""Invitations: what the QR code holds, and the page for those without scripts."""

import asyncio
import html
import re
from pathlib import Path

import httpx
import pytest

from bullpen.testing.site import button_of, site
from bullpen.web.invitations import LIFETIME_SECONDS, qr_code


@pytest.mark.parametrize("text", ["http://127.0.0.1:8423/enter/" + "a" * 43, "https://box.example/enter/ÄÖ<&>" * 5])
def test_a_qr_code_is_dark_on_white_and_has_a_quiet_zone(text: str) -> None:
    picture = qr_code(text)

    size = int(re.findall(r'viewBox="0 0 (\d+) \1"', picture)[0])
    dark = {(int(x), int(y)) for x, y in re.findall(r"M(\d+) (\d+)h1v1h-1z", picture)}
    assert all(4 <= x < size - 4 and 4 <= y < size - 4 for x, y in dark)
    # The three corners by which a camera finds it.
    for left, top in ((4, 4), (size - 11, 4), (4, size - 11)):
        assert {(left + step, top) for step in range(7)} <= dark
        assert (left + 1, top + 1) not in dark
    assert 'fill="#fff"' in picture


def test_without_scripts_it_is_a_page_and_its_address_works_once(tmp_path: Path) -> None:
    async def story() -> list[int]:
        async with site(tmp_path) as served, httpx.AsyncClient(base_url=served.url) as client:
            asked = await client.post("/invite", headers=served.headers)
            assert re.findall(r'name="role" value="(\w+)"', asked.text) == ["guest", "owner"]
            in_a_dialog = await client.post("/invite", headers={**served.headers, "HX-Request": "true"})
            assert ["<!doctype html>" in one.text.lower() for one in (asked, in_a_dialog)] == [True, False]
            invited = await client.post("/invite", headers=served.headers, data={"role": "guest"})
            (address,) = re.findall(r'value="([^"]+/enter/[^"]+)"', html.unescape(invited.text))
            assert "It works on this machine only" in invited.text
            assert LIFETIME_SECONDS == 3600
            return [(await client.post(address, headers=button_of(address))).status_code for _ in range(2)]

    assert asyncio.run(story()) == [303, 401]
