"""Those who watch: all news in order, no viewer delays another, and whoever comes back learns what is missing."""

import asyncio

from tests.conversation.stage import Stage, tell

from bullpen.conversation import broadcast
from bullpen.conversation.broadcast import Broadcast, Numbered
from bullpen.conversation.events import (
    Continued,
    Lagged,
    Queued,
    Quiet,
    Said,
    Trouble,
    TurnBegan,
    TurnEnded,
    TurnEvent,
)
from bullpen.turn_events import TextDelta


async def test_a_viewer_sees_everything_in_order_until_the_end(team: Stage) -> None:
    seen: list[type] = []

    async def look() -> None:
        seen.extend([type(news) async for news in conversation.watch()])

    async with team.open() as conversation:
        looking = asyncio.create_task(look())
        await asyncio.sleep(0)
        await tell(conversation, "Hello")
    await looking
    without_stream = [kind for kind in seen if kind is not TurnEvent]
    assert without_stream == [Said, Queued, TurnBegan, Said, TurnEnded, Quiet]
    assert TurnEvent in seen


async def test_whoever_comes_back_gets_what_happened_meanwhile(team: Stage) -> None:
    async with team.open() as conversation:
        await tell(conversation, "Hello")
        number = conversation.last_number
        await tell(conversation, "Again")
        with conversation.viewing(after=number) as viewer:
            numbered = [await anext(viewer) for _ in range(number, conversation.last_number)]
        assert [item.number for item in numbered] == list(range(number + 1, conversation.last_number + 1))
        with conversation.viewing(after=conversation.last_number) as viewer:
            await conversation.continue_turns()
            assert (await anext(viewer)).event == Continued(by="kim")


async def test_hundreds_of_viewers_of_whom_one_never_reads_delay_nobody(team: Stage) -> None:
    async def count() -> int:
        return len([news async for news in conversation.watch()])

    async with team.open() as conversation:
        with conversation.viewing():
            counts = [asyncio.create_task(count()) for _ in range(300)]
            await asyncio.sleep(0)
            await tell(conversation, "Hello [NEXT: a, b, c]")
        number = conversation.last_number
    assert await asyncio.gather(*counts) == [number] * 300


def piece(number: int) -> TurnEvent:
    return TurnEvent(turn_id="1", member="a", event=TextDelta(str(number)))


async def test_a_viewer_that_does_not_read_loses_pieces_first_and_is_told() -> None:
    news = Broadcast()
    with news.viewing() as viewer:
        for number in range(broadcast.MOST_PIECES + 10):
            news.publish(piece(number))
        news.publish(Trouble(text="last"))
        news.close()
        seen = [numbered async for numbered in viewer]
    assert len(seen) == broadcast.MOST_PIECES + 2
    assert seen[-2:] == [
        Numbered(broadcast.MOST_PIECES + 10, Lagged(missed=10)),
        Numbered(broadcast.MOST_PIECES + 11, Trouble(text="last")),
    ]


async def test_a_viewer_that_never_reads_is_sent_away_at_last() -> None:
    news = Broadcast()
    with news.viewing() as viewer:
        for _ in range(broadcast.MOST_EVENTS + 10):
            news.publish(Trouble(text="again"))
        seen = [numbered async for numbered in viewer]
    assert len(seen) == broadcast.MOST_EVENTS + 1
    assert seen[-1].event == Lagged(missed=0)


async def test_what_is_gone_is_reported_as_gone() -> None:
    news = Broadcast()
    for _ in range(broadcast.RECENT_EVENTS + 7):
        news.publish(Trouble(text="again"))
    with news.viewing(after=2) as viewer:
        first, second = await anext(viewer), await anext(viewer)
    assert first == Numbered(7, Lagged(missed=5))
    assert second.number == 8


async def test_a_number_of_an_earlier_process_gives_all_there_is_and_says_so() -> None:
    news = Broadcast()
    news.publish(Trouble(text="new"))
    with news.viewing(after=500) as viewer:
        assert [await anext(viewer), await anext(viewer)] == [
            Numbered(0, Lagged(missed=0)),
            Numbered(1, Trouble(text="new")),
        ]


async def test_a_viewer_of_a_closed_conversation_gets_the_rest_and_the_end() -> None:
    news = Broadcast()
    news.publish(Trouble(text="one"))
    news.close()
    with news.viewing(after=0) as viewer:
        assert [numbered.number async for numbered in viewer] == [1]
