"""A person who presses, clicks and types at random on the full screen, while agents work."""

import asyncio
import random
from collections import deque
from collections.abc import Awaitable, Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from unittest import mock

from textual import events
from textual.drivers.headless_driver import HeadlessDriver
from textual.geometry import Size
from textual.pilot import Pilot, WaitForScreenTimeout
from textual.widgets.text_area import Selection

from bullpen.conversation.conversation import Conversation
from bullpen.conversation.events import Trouble
from bullpen.errors import BullpenError
from bullpen.tui.app import BullpenApp
from bullpen.tui.chat import ChatScreen
from bullpen.tui.composer import Composer
from bullpen.tui.open_conversations import OpenConversations
from bullpen.tui.transcript import Transcript

KEYS = (
    *("up", "down", "left", "right", "home", "end", "pageup", "pagedown", "tab", "shift+tab", "enter", "enter"),
    *("escape",) * 6,
    *(
        "ctrl+j",
        "ctrl+end",
        "ctrl+home",
        "shift+up",
        "shift+down",
        "f1",
        "f2",
        "f3",
        "f4",
        "f5",
        "f6",
        "f7",
        "f8",
        "f9",
    ),
    *("ctrl+o", "ctrl+g", "ctrl+l", "ctrl+p", "ctrl+t", "ctrl+s", "ctrl+c"),
)
SCROLLING_KEYS = ("up", "down", "pageup", "pagedown", "pagedown", "home", "end", "ctrl+end", "tab", "shift+tab")
WORDS = (
    "/queue",
    "/who",
    "/task ",
    "/theme",
    "/retry",
    "/skip",
    "/drop",
    "/next max",
    "@max ",
    "[NEXT: sarah] ",
    "@",
    "/",
)
# A busy machine takes long for thousands of lines; only a screen that hangs takes longer.
PATIENCE_SECONDS = 150.0
# Each character that is typed or pasted is another one, so that it can be found again wherever it went.
FIRST_CHARACTER, LAST_CHARACTER = 0x4E00, 0x9FA5


class DrivenApp(BullpenApp):
    """The full screen, which a random person cannot leave, and which knows where each key went."""

    def __init__(self, conversation: Conversation, conversations: OpenConversations) -> None:
        super().__init__(conversation, conversations=conversations)
        self.written: set[str] = set()
        """Characters that were typed or pasted where people write messages, not where they search."""

    async def on_event(self, event: events.Event) -> None:
        """Note where text goes."""
        is_new = isinstance(event, events.Key | events.Paste) and not event.is_forwarded
        await super().on_event(event)
        if is_new and isinstance(self.screen, ChatScreen):
            text = event.text if isinstance(event, events.Paste) else getattr(event, "character", None) or ""
            self.written.update(filter(is_unique, text))

    def action_leave(self) -> None:
        """Stay."""


def is_unique(character: str) -> bool:
    """Tell whether a character is one of those that are typed only once."""
    return FIRST_CHARACTER <= ord(character) <= LAST_CHARACTER


class RandomPerson:
    """Does one thing after the other, and remembers the last ones."""

    def __init__(
        self,
        app: DrivenApp,
        pilot: Pilot[None],
        chance: random.Random,
        characters: Iterator[str],
        keys: Sequence[str] = (),
    ) -> None:
        """Do everything, or with some keys only press these."""
        self.app = app
        self._keys_to_press = keys or KEYS
        self.last: deque[str] = deque(maxlen=12)
        self._pilot = pilot
        self._chance = chance
        self._characters = characters
        self._does: list[tuple[int, Callable[[], Awaitable[None]]]] = [
            (40, self._press),
            (20, self._type),
            (8, self._say),
            (3, self._paste),
            (10, self._click),
            (4, self._drag),
            (8, self._scroll),
            (4, self._resize),
            (2, self._stop),
            (3, self._another_speaks),
            (1, self._trouble),
            (6, self._wait),
        ]
        if keys:
            self._does = [(10, self._press), (1, self._wait)]

    async def act(self) -> None:
        """Do something."""
        weights = [weight for weight, _ in self._does]
        [(_, action)] = self._chance.choices(self._does, weights)
        await action()
        # Mostly without waiting: people do not wait for a screen either.
        if self._chance.random() < 0.3:
            await self._settled()
        else:
            await asyncio.sleep(0.001)

    async def _settled(self) -> None:
        """Wait until what came is done. The parts of a screen that goes meanwhile never answer; all others must."""
        screen = self.app.screen
        try:
            await self._pilot._wait_for_screen(timeout=PATIENCE_SECONDS)
        except WaitForScreenTimeout:
            if self.app.screen is screen:
                raise

    async def _press(self) -> None:
        self._key(self._chance.choice(self._keys_to_press))

    async def _type(self) -> None:
        if self._chance.random() < 0.2:
            self._keys(self._chance.choice(WORDS))
        else:
            self._keys("".join(next(self._characters) for _ in range(self._chance.randint(1, 6))))

    async def _say(self) -> None:
        """Type and send in one packet."""
        await self._type()
        self._key("enter")

    async def _paste(self) -> None:
        text = "\n".join(next(self._characters) for _ in range(self._chance.randint(1, 4)))
        self.last.append(f"paste {text!r}")
        self.app.post_message(events.Paste(text))

    async def _click(self) -> None:
        place = self._place()
        self.last.append(f"click {place}")
        for _ in range(self._chance.choice((1, 1, 1, 2))):
            self._mouse(events.MouseDown, place)
            self._mouse(events.MouseUp, place)

    async def _drag(self) -> None:
        places = [self._place(), self._place()]
        self.last.append(f"drag {places}")
        self._mouse(events.MouseDown, places[0])
        self._mouse(events.MouseMove, places[1])
        self._mouse(events.MouseUp, places[1])

    async def _scroll(self) -> None:
        kind = self._chance.choice((events.MouseScrollUp, events.MouseScrollDown))
        place, times = self._place(), self._chance.randint(1, 12)
        self.last.append(f"{kind.__name__} {times} times at {place}")
        for _ in range(times):
            self._mouse(kind, place)

    async def _resize(self) -> None:
        size = Size(*self._chance.choice(((80, 24), (120, 40), (200, 60), (30, 10), (12, 5), (99, 30))))
        self.last.append(f"resize {size}")
        if isinstance(self.app._driver, HeadlessDriver):
            self.app._driver._size = size
        self.app.post_message(events.Resize(size, size))

    async def _stop(self) -> None:
        self._key("f9")
        self._key("f9")

    async def _another_speaks(self) -> None:
        """Somebody says something through another door."""
        self.last.append("another speaks")
        conversation = self._conversation
        if conversation is not None:
            with suppress(BullpenError):
                await conversation.say(f"From elsewhere: {self._chance.random()}", sender="kim")

    async def _trouble(self) -> None:
        self.last.append("trouble")
        if self._conversation is not None:
            self._conversation._journal.publish(Trouble(text="Something is wrong."))

    async def _wait(self) -> None:
        self.last.append("wait")
        await asyncio.sleep(self._chance.random() / 5)

    def _mouse(self, kind: type[events.MouseEvent], place: tuple[int, int]) -> None:
        x, y = place
        self.app.post_message(kind(None, x, y, 0, 0, 1, False, False, False, x, y))

    def _key(self, key: str) -> None:
        self.last.append(key)
        self.app.post_message(events.Key(key, None))

    def _keys(self, text: str) -> None:
        self.last.append(f"type {text!r}")
        for character in text:
            self.app.post_message(events.Key(character, character))

    def _place(self) -> tuple[int, int]:
        width, height = self.app.size
        return self._chance.randrange(max(1, width)), self._chance.randrange(max(1, height))

    @property
    def _conversation(self) -> Conversation | None:
        screen = chat_screen(self.app)
        return screen.conversation if screen is not None else None


@contextmanager
def nothing_typed_over() -> Iterator[None]:
    """Let what is typed never replace what is selected, as it should: that text would be missed."""

    async def on_key(self: Composer, event: events.Key) -> None:
        self.selection = Selection.cursor(self.cursor_location)
        await key(self, event)

    async def on_paste(self: Composer, event: events.Paste) -> None:
        self.selection = Selection.cursor(self.cursor_location)
        await paste(self, event)

    key, paste = Composer._on_key, Composer._on_paste
    with mock.patch.object(Composer, "_on_key", on_key), mock.patch.object(Composer, "_on_paste", on_paste):
        yield


def chat_screen(app: BullpenApp) -> ChatScreen | None:
    """Return the conversation that is on the screen, or below a dialog."""
    return next((screen for screen in reversed(app.screen_stack) if isinstance(screen, ChatScreen)), None)


def kept_by(app: DrivenApp) -> str:
    """Return all text that the screen keeps: what is being written, and what was written before."""
    screens = [screen for screen in app.screen_stack if isinstance(screen, ChatScreen)]
    composers = [composer for screen in screens for composer in screen.query(Composer)]
    # A draft can be reached only from within the history.
    drafts = [composer._draft for composer in composers if composer._place is not None]
    kept = [*drafts, *(text for composer in composers for text in (composer.text, *composer._history))]
    return "\n".join([*kept, *app._drafts.values()])


def gaps_in(app: BullpenApp) -> list[str]:
    """Return what is wrong with the messages on the screen."""
    screen = chat_screen(app)
    numbers = [view.sequence for view in screen.query_one(Transcript).views] if screen is not None else []
    is_whole = numbers == list(range(numbers[0], numbers[0] + len(numbers))) if numbers else True
    return [] if is_whole else [f"messages are missing or doubled on the screen: {numbers}"]
