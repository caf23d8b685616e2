"""What holds for any text, in every store."""

from collections.abc import Callable

from hypothesis import strategies as st
from msgspec.structs import replace

from bullpen.approvals import Answer, ApprovalRecord
from bullpen.messages import ConversationMessage, Routing, Speaker
from bullpen.routing.queue import WaitingTurn
from bullpen.store.base import Store, StoredMessage
from bullpen.turn_events import ApprovalAsked

# What any text holds seldom is put in more often: Chinese, emoji of several characters, control characters, quotes.
TEXT = st.lists(
    st.one_of(
        st.text(),
        st.sampled_from(["你好，世界", "👩‍💻🏽", "\r\n\x1b[0m\x7f", "\"\\'", "\ufeff\u2028e\u0301", "x" * 500]),
    ),
    max_size=8,
).map("".join)
NAMES = st.lists(TEXT, max_size=3).map(tuple)
SPEAKERS = st.builds(
    Speaker,
    role_id=TEXT,
    role_name=TEXT,
    type=st.sampled_from(["human", "ai", "system"]),
    role_title=st.none() | TEXT,
)
ROUTINGS = st.builds(
    Routing,
    resolved_addressees=NAMES,
    raw_next_markers=NAMES,
    drop_targets=NAMES,
    parent_message_id=st.none() | TEXT,
    intent=st.none() | TEXT,
)
MESSAGES = st.builds(
    ConversationMessage,
    id=TEXT,
    content=TEXT,
    speaker=SPEAKERS,
    timestamp=st.integers(-(2**63), 2**63 - 1),
    routing=st.none() | ROUTINGS,
)

TIMES = st.integers(-(2**63), 2**63 - 1)
VALUES = st.recursive(
    st.none() | st.booleans() | TIMES | st.floats(allow_nan=False, allow_infinity=False) | TEXT,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(TEXT, inner, max_size=3),
    max_leaves=6,
)
QUESTIONS = st.builds(
    ApprovalAsked,
    id=TEXT,
    kind=st.sampled_from(["command", "edit", "network", "tool", "question"]),
    command=TEXT,
    diff=TEXT,
    paths=NAMES,
    details=st.dictionaries(TEXT, VALUES, max_size=3),
    choices=NAMES,
    can_change=st.booleans(),
)
ANSWERS = st.builds(Answer, verdict=st.sampled_from(["yes", "no", "stop"]), reason=TEXT, command=TEXT, text=TEXT)
ABOUT = {"turn_id": st.just("1"), "member": TEXT, "at": TIMES}
SCOPES = st.sampled_from(["once", "turn", "conversation", "team"])
APPROVALS = st.lists(TEXT, max_size=4, unique=True).flatmap(
    lambda ids: st.tuples(
        *(st.builds(ApprovalRecord, **ABOUT, question=st.just(one), asked=QUESTIONS) for one in ids),
        *(
            st.builds(ApprovalRecord, **ABOUT, question=st.just(one), answer=ANSWERS, by=TEXT, scope=SCOPES)
            for one in ids[1:]
        ),
    ).map(list)
)
"""Questions of turn 1, and the answers to all but the first."""

Written = tuple[str, str, list[ConversationMessage]]
"""The id of a conversation, its team, and what is said in it."""
CONVERSATIONS = st.tuples(TEXT, TEXT, st.lists(MESSAGES, max_size=6, unique_by=lambda message: message.id))
TEXTS = st.lists(TEXT, min_size=1, max_size=5)
SPEAKER = Speaker(role_id="kai", role_name="Kai", type="human")


def check_any_text(open_store: Callable[[], Store], written: Written, query: str) -> None:
    """Write to an empty store, and read everything again as it was written."""
    conversation_id, team, messages = written
    with open_store() as store:
        store.create(conversation_id, team=team, team_file=team, started_at=0, team_task=team)
        stored = [store.append(conversation_id, message) for message in messages]
        store.search(query)

    with open_store() as store:
        assert [one.message for one in store.messages(conversation_id)] == messages
        assert store.messages(conversation_id) == stored
        assert [store.message(conversation_id, message.id) for message in messages] == stored
        assert (store.conversation(conversation_id).team, store.fsck()) == (team, [])


def check_any_approvals(open_store: Callable[[], Store], records: list[ApprovalRecord]) -> None:
    """Ask and answer in an empty store, and read everything again as it was stored, in a chain that can be followed."""
    with open_store() as store:
        store.create("c", team="", team_file="", started_at=0)
        message = ConversationMessage(id="m", content="", speaker=SPEAKER)
        store.append("c", message, turns=[WaitingTurn(id="1", member="max", message_id="m")])
        stored = [store.note_approval("c", record) for record in records]

    with open_store() as store:
        assert store.approvals("c") == store.approvals("c", turn_ids=["1"]) == stored
        assert [replace(one, number=0, after_message=0, hash=b"") for one in stored] == records
        assert store.fsck() == []


def check_any_piece(open_store: Callable[[], Store], texts: list[str], data: st.DataObject) -> None:
    """Say something in an empty store, and find every word of it."""
    text = data.draw(st.sampled_from(texts))
    words = [word for word in text.split() if any(character.isalnum() for character in word)]
    with open_store() as store:
        store.create("c", team="", team_file="", started_at=0)
        stored: list[StoredMessage] = [
            store.append("c", ConversationMessage(id=str(number), content=content, speaker=SPEAKER))
            for number, content in enumerate(texts)
        ]
        expected = {one.message.id for one in stored if one.message.content == text}
        for word in words:
            assert expected <= {found.message_id for found in store.search(word)}
