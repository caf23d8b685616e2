"""Inviting another browser: a dialog in view, whose address works once, copied or scanned."""

from pathlib import Path

from playwright.async_api import Page, expect
from tests.web.browser.stage import OpenBrowser, play

from bullpen.cli.entrance import leading_to
from bullpen.testing.site import site
from bullpen.testing.stage import write_team
from bullpen.web.identity import GUEST


async def is_in_view(page: Page, selector: str) -> bool:
    found = await page.evaluate(
        """(selector) => {
             const box = document.querySelector(selector).getBoundingClientRect();
             return box.top >= 0 && box.left >= 0 && box.bottom <= innerHeight && box.right <= innerWidth;
           }""",
        selector,
    )
    return bool(found)


def test_the_invitation_is_in_view_wherever_one_has_scrolled_to(tmp_path: Path, open_browser: OpenBrowser) -> None:
    async def story() -> None:
        team = write_team(tmp_path, {"max": [{"say": "Long.\n\n" * 100}]})
        async with site(tmp_path, team) as served, open_browser() as browser:
            opened = await served.hub.begin()
            await opened.conversation.say("Go.")
            await opened.conversation.until_quiet()
            context = await browser.new_context(viewport={"width": 390, "height": 844})
            await context.grant_permissions(["clipboard-read", "clipboard-write"])
            page = await context.new_page()
            foreign: list[str] = []
            page.on("request", lambda sent: None if sent.url.startswith(served.url) else foreign.append(sent.url))
            await served.let_in(page)
            await page.goto(f"{served.url}/c/{opened.conversation.id}")
            await expect(page.locator("#m2")).to_be_visible()
            assert await page.evaluate("scrollY") > 1000
            await page.get_by_text("More", exact=True).click()
            await page.get_by_role("button", name="Invite").click()
            dialog = page.get_by_role("dialog", name="Invite a browser")
            await expect(dialog).to_be_visible()
            assert await is_in_view(page, "dialog")
            await dialog.get_by_label("Read as a guest").check()
            await dialog.get_by_role("button", name="Make an address").click()
            await expect(dialog).to_contain_text("It reads, and changes nothing.")
            for width in (1440, 390):
                await page.set_viewport_size({"width": width, "height": 844})
                assert await is_in_view(page, "dialog")
            await expect(dialog.get_by_role("img", name="QR code")).to_be_visible()
            await expect(dialog).to_contain_text("once, until")
            await dialog.get_by_role("button", name="Copy").click()
            await expect(dialog.get_by_role("button", name="Copied")).to_be_visible()
            address = await page.evaluate("navigator.clipboard.readText()")
            assert address.startswith(f"{served.url}/enter/")
            await page.keyboard.press("Escape")
            await expect(dialog).to_have_count(0)
            guest = await (await browser.new_context()).new_page()
            await served.let_in(guest, address)
            await expect(guest.get_by_role("heading", level=1)).to_have_text("Conversations")
            await guest.goto(f"{served.url}/c/{opened.conversation.id}")
            await expect(guest.locator(".closed")).to_contain_text("You can read this conversation.")
            await expect(guest.locator("#composer")).to_have_count(0)
            assert foreign == []

    play(story())


def test_who_is_invited_takes_part_until_it_is_revoked(tmp_path: Path, open_browser: OpenBrowser) -> None:
    async def story() -> None:
        team = write_team(tmp_path, {"max": [{"say": "Done."}]})
        async with site(tmp_path, team) as served, open_browser() as browser:
            opened = await served.hub.begin()
            owner, colleague = [await (await browser.new_context()).new_page() for _ in range(2)]
            await served.let_in(owner)
            await owner.get_by_role("button", name="Invite").click()
            await owner.get_by_label("Take part").check()
            await owner.get_by_role("button", name="Make an address").click()
            await served.let_in(colleague, await owner.get_by_label("Address for another browser").input_value())
            await expect(colleague.locator(".me")).to_have_text("kim member")
            await colleague.goto(f"{served.url}/c/{opened.conversation.id}")
            await colleague.get_by_label("Your message").fill("Hello.")
            await colleague.get_by_label("Your message").press("Enter")
            await expect(colleague.locator("#m1 h2")).to_have_text("kim")
            await owner.goto(f"{served.url}/people")
            rows = owner.locator(".signed-in li")
            await expect(rows).to_have_count(2)
            await expect(rows.nth(0)).to_contain_text("kim member")
            await expect(rows.nth(1)).to_contain_text("this browser")
            await rows.nth(0).get_by_role("button", name="Revoke").click()
            await expect(rows).to_have_count(1)
            # Its stream ends, and it says what to do.
            await opened.conversation.note("Not for kim.", sender="kim")
            await expect(colleague.locator("#connection")).to_contain_text("not signed in any more")
            await expect(colleague.get_by_text("Not for kim.")).to_have_count(0)

    play(story())


def test_a_file_leads_in(tmp_path: Path, open_browser: OpenBrowser) -> None:
    """A file is another site, so a browser sends no strict cookie to where it is redirected from there."""

    async def story() -> None:
        async with site(tmp_path) as served, open_browser() as browser:
            file = tmp_path / "bullpen.html"
            file.write_text(leading_to(served.new_url()))
            page = await (await browser.new_context()).new_page()
            await page.goto(file.as_uri())
            await expect(page.get_by_role("heading", level=1)).to_have_text("Conversations")
            assert page.url == f"{served.url}/"

    play(story())


def test_a_weaker_address_takes_nothing_from_an_owner(tmp_path: Path, open_browser: OpenBrowser) -> None:
    async def story() -> None:
        async with site(tmp_path) as served, open_browser() as browser:
            page, guest = [await (await browser.new_context()).new_page() for _ in range(2)]
            await served.let_in(page)
            invitation = f"{served.url}/enter/{served.keys.new_invitation(GUEST, 60)}"
            # A link elsewhere leads here without a cookie, so the page cannot know yet who it is.
            elsewhere = tmp_path / "mail.html"
            elsewhere.write_text(f'<a href="{invitation}">Join</a>')
            await page.goto(elsewhere.as_uri())
            await page.get_by_role("link", name="Join").click()
            await page.get_by_role("button", name="Sign in").click()
            await expect(page.get_by_role("heading", level=1)).to_have_text("This browser may do more already")
            await page.get_by_role("link", name="Go to your conversations").click()
            await expect(page.get_by_role("link", name="People")).to_be_visible()
            # Nothing was used up.
            await served.let_in(guest, invitation)
            await expect(guest.locator(".me")).to_have_text("guest viewer")

    play(story())


def test_addresses_that_nobody_used_are_under_people(tmp_path: Path, open_browser: OpenBrowser) -> None:
    async def story() -> None:
        async with site(tmp_path) as served, open_browser() as browser:
            page, guest = [await (await browser.new_context()).new_page() for _ in range(2)]
            await served.let_in(page)
            invitation = f"{served.url}/enter/{served.keys.new_invitation(GUEST, 60)}"
            await guest.goto(invitation)
            await page.goto(f"{served.url}/people")
            unused = page.locator(".unused li")
            await expect(unused).to_contain_text("guest viewer")
            await unused.get_by_role("button", name="Revoke").click()
            await expect(unused).to_have_count(0)
            await guest.get_by_role("button", name="Sign in").click()
            await expect(guest.get_by_role("heading", level=1)).to_have_text("This address has been used")

    play(story())
