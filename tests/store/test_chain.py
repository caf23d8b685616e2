"""The chain of hashes: what another program computes from the description alone must be the same."""

import hashlib
import json
import sys

from bullpen.messages import ConversationMessage, Routing, Speaker
from bullpen.store.chain import next_link

ALL_CHARACTERS = "".join(chr(code) for code in range(sys.maxunicode + 1) if not 0xD800 <= code <= 0xDFFF)


def test_the_standard_library_computes_the_same_hash_whatever_characters_a_message_holds() -> None:
    speaker = Speaker(role_id="max", role_name=ALL_CHARACTERS, type="ai", role_title='a "title" \\ of\n two lines')
    routing = Routing(
        resolved_addressees=("kim", "李"),
        raw_next_markers=(ALL_CHARACTERS,),
        drop_targets=(),
        parent_message_id="m0",
        intent=None,
    )
    message = ConversationMessage(
        id="m1", content=ALL_CHARACTERS, speaker=speaker, timestamp=2**63 - 1, routing=routing
    )
    before = hashlib.sha256(b"the hash before").digest()

    facts = [
        7,
        "m1",
        2**63 - 1,
        ["max", ALL_CHARACTERS, "ai", 'a "title" \\ of\n two lines'],
        [["kim", "李"], [ALL_CHARACTERS], [], "m0", None],
    ]
    line = json.dumps(facts, ensure_ascii=False, separators=(",", ":"))
    expected = hashlib.sha256(before + line.encode() + b"\n" + ALL_CHARACTERS.encode()).digest()
    assert next_link(before, 7, message) == expected


def test_a_message_without_routing_says_null() -> None:
    speaker = Speaker(role_id="kim", role_name="Kim", type="human")
    message = ConversationMessage(id="m1", content="Hello", speaker=speaker, timestamp=0, routing=None)

    expected = hashlib.sha256(b'before[1,"m1",0,["kim","Kim","human",null],null]\nHello').digest()
    assert next_link(b"before", 1, message) == expected
