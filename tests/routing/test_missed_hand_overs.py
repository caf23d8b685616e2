"""Missed hand-overs: a corpus of replies with the routing that is expected of each, and rules that hold for any text.

Precision and recall are printed. What was counted when the patterns met a reply for the first time: on every fourth
reply of the corpus, kept apart while they were written, 30 of 30; on second_look.toml, written to break them, 11 of 24
with 2 false ones, whereupon they were improved; on third_look.toml, written last, 22 of 26 with no false one. A mistake
that it showed was corrected, and its other three misses were left as they are.
"""

import re
import sys
import tomllib
from collections import Counter
from collections.abc import Callable, Iterable
from functools import cache
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec import Struct, convert

from bullpen.context import read_markers
from bullpen.routing.hand_over_phrases import ASKING, HANDING, hand_overs
from bullpen.routing.last_sentences import LONGEST_ENDING
from bullpen.routing.missed_hand_overs import LONGEST_QUOTE, MOST_NAMES, MissedHandOver, missed_hand_over
from bullpen.routing.resolver import Resolver
from bullpen.team.reader import read_team
from bullpen.team.team import Member, Team
from bullpen.text.names import nearest

REPLIES = Path(__file__).parent / "replies"
TEAMS = {path.stem: read_team(path.read_text(encoding="utf-8")) for path in (REPLIES / "teams").glob("*.toml")}
KINDS = ("in_code", "misspelled", "in_words")
LOOKED_AT_LATER = ("second_look", "third_look")


class Expected(Struct, frozen=True):
    kind: str
    members: tuple[str, ...]


class Reply(Struct, frozen=True, kw_only=True):
    text: str
    team: str
    sender: str
    to: tuple[str, ...] = ()
    missed: Expected | None = None
    file: str
    number: int

    @property
    def part(self) -> str:
        if self.file in LOOKED_AT_LATER:
            return self.file
        return "held out" if self.number % 4 == 3 else "tuned"

    @property
    def found(self) -> Expected | None:
        return _found(self)


@cache
def _found(reply: Reply) -> Expected | None:
    team = TEAMS[reply.team]
    found = missed_hand_over(reply.text, team.member(reply.sender), team)
    return Expected(found.kind, found.members) if found else None


def replies() -> list[Reply]:
    return [
        convert({**reply, "file": path.stem, "number": number}, Reply)
        for path in sorted(REPLIES.glob("*.toml"))
        for number, reply in enumerate(tomllib.loads(path.read_text(encoding="utf-8"))["reply"])
    ]


CORPUS = replies()


class Score(Struct, frozen=True):
    right: int
    suggested: int
    expected: int

    @property
    def precision(self) -> float:
        return self.right / self.suggested if self.suggested else 1.0

    @property
    def recall(self) -> float:
        return self.right / self.expected if self.expected else 1.0

    def __str__(self) -> str:
        precision = f"precision {self.precision:.3f} ({self.right}/{self.suggested})"
        return f"{precision}  recall {self.recall:.3f} ({self.right}/{self.expected})"


def score(some: list[Reply]) -> Score:
    """Count a suggestion as right only if kind and members are."""
    pairs = [(reply.found, reply.missed) for reply in some]
    return Score(
        sum(found == expected for found, expected in pairs if expected),
        sum(found is not None for found, _ in pairs),
        sum(expected is not None for _, expected in pairs),
    )


def test_a_working_marker_routes_exactly() -> None:
    resolvers = {name: Resolver(team) for name, team in TEAMS.items()}
    for reply in CORPUS:
        where = f"reply {reply.number} of {reply.file}"

        found = map(resolvers[reply.team].resolve, read_markers(reply.text).addressees)

        assert tuple(member.name for member in found if isinstance(member, Member)) == reply.to, where
        if reply.to:
            assert reply.found is None, where


def test_precision_and_recall(capsys: pytest.CaptureFixture[str]) -> None:
    parts = {
        part: score([reply for reply in CORPUS if reply.part == part])
        for part in ("tuned", "held out", *LOOKED_AT_LATER)
    }
    kinds = {
        kind: score([r for r in CORPUS if kind in (r.missed and r.missed.kind, r.found and r.found.kind)])
        for kind in KINDS
    }
    everything = score(CORPUS)

    with capsys.disabled():
        print(f"\nmissed hand-overs in {len(CORPUS)} replies")
        for name, counted in {**parts, **kinds, "all": everything}.items():
            print(f"  {name:12} {counted}")

    assert everything.precision >= 0.97
    assert everything.recall >= 0.95
    assert parts["held out"].precision >= 0.97
    assert parts["held out"].recall >= 0.9
    assert parts["third_look"].precision >= 0.97
    assert parts["third_look"].recall >= 0.8


def test_the_corpus_is_large_enough() -> None:
    kinds = Counter(reply.missed.kind if reply.missed else "working" if reply.to else "nothing" for reply in CORPUS)

    assert len({reply.text for reply in CORPUS}) == len(CORPUS) >= 240
    assert kinds["working"] >= 90
    assert kinds["nothing"] >= 75
    assert min(kinds[kind] for kind in KINDS) >= 25


SOLO = TEAMS["solo"]
STUDIO = TEAMS["studio"]


def missed(text: str, sender: str = "max", team: Team = SOLO) -> MissedHandOver | None:
    return missed_hand_over(text, team.member(sender), team)


def meant(text: str, sender: str = "max", team: Team = SOLO) -> tuple[str, ...]:
    found = missed(text, sender, team)
    return found.members if found else ()


def team_of(*names: str, **display_names: str) -> Team:
    agents = [f'[[member]]\nname = "{name}"\nagent = "claude"' for name in names]
    named = [
        f'[[member]]\nname = "{n}"\ndisplay_name = "{display}"\nagent = "codex"' for n, display in display_names.items()
    ]
    return read_team("\n".join(['[[member]]\nname = "kim"', *agents, *named]))


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("Done. `[NEXT: sarah]`", "max wrote [NEXT: sarah] only in code."),
        ("Done. [NEXT: sahra]", "max wrote [NEXT: sahra]; nobody here is called that. It probably means sarah."),
        (
            "[NEXT: sahra & crol]",
            "max wrote [NEXT: sahra & crol]; nobody here is called that. It probably means sarah and carol.",
        ),
        ("Done. \\[NEXT: sarah\\]", "max wrote \\[NEXT: sarah\\], but the backslashes turn it into plain text."),
        ("Tests pass. Over to you, Sarah.", "max wrote “Over to you, Sarah” without [NEXT: sarah]."),
        ("@sarah It works. Please check it!", "max wrote “@sarah, … Please check it!” without [NEXT: sarah]."),
        (
            "All green, so I'm passing `retry.py` on. Sarah and **Carol**, could you look at `retry.py`?",
            "max wrote “Sarah and Carol, could you look at …?” without [NEXT: sarah, carol].",
        ),
    ],
)
def test_people_read_what_happened(text: str, sentence: str) -> None:
    found = missed(text)

    assert found is not None
    assert found.sentence == sentence


def test_what_is_concluded_is_plain_data() -> None:
    assert missed("Over to Sarah.") == MissedHandOver(
        sender="max", members=("sarah",), kind="in_words", quote="Over to Sarah"
    )


def test_every_row_of_the_table_finds_its_example() -> None:
    team = team_of("max", "sarah", "carol", "zoe")
    for example in (*HANDING, *ASKING):
        named = {name for name in ("max", "sarah", "carol") if name in example.lower()}

        assert set(meant(f"All tests pass.\n\n{example}", "zoe", team)) == named, example


@pytest.mark.parametrize(
    "hidden",
    ["> {}", "```\n{}\n```", "~~~\n{}", "- `{}`", "“{}”", '"{}"', "'{}'", "「{}」", "| a | {} |", '"Hi,\n\n{}\n\nBye"'],
)
def test_nothing_in_code_or_quotes_or_tables_hands_over(hidden: str) -> None:
    team = team_of("max", "sarah", "carol", "zoe")
    for example in (*HANDING, *ASKING):
        text = f"It works now, and the log says:\n\n{hidden.format(example)}"

        assert missed(text, "zoe", team) is None, text


@pytest.mark.parametrize(
    "text",
    [
        "> [NEXT: sarah]",
        "- > [NEXT: sarah]",
        "> ```\n> [NEXT: sarah]\n> ```",
        "> `[NEXT: sarah]`",
        "```\n> [NEXT: sarah]\n```",
        f"> {'It is long. ' * 200}`[NEXT: sarah]`",
        "It works.\r\r> It is fast. `[NEXT: sarah]`",
    ],
)
def test_a_marker_in_a_quote_is_not_one_in_code(text: str) -> None:
    assert missed(f"Done.\n\n{text}") is None


def test_a_marker_for_a_member_leaves_nothing_to_suggest() -> None:
    assert missed("[NEXT: carol] Over to Sarah.") is None
    assert missed("[NEXT: sahra, carol]") is None
    assert missed("Over to Sarah. [NEXT: max]") is None


def test_a_name_that_fits_two_members_is_left_to_the_router() -> None:
    team = Team(
        name="twins",
        lead="max",
        members=(
            Member(name="max", type="ai"),
            Member(name="a", type="ai", display_name="Sarah"),
            Member(name="b", type="ai", display_name="Sarah"),
        ),
    )

    assert missed("[NEXT: Sarah]", "max", team) is None
    assert missed("Over to Sarah.", "max", team) is None


def test_a_marker_for_nobody_does_not_hide_the_words() -> None:
    assert meant("Sarah, please review this. [NEXT: user]") == ("sarah",)


def test_only_whom_the_sender_may_address() -> None:
    assert meant("Over to Carol.", "sarah", STUDIO) == ()
    assert meant("`[NEXT: carol]`", "sarah", STUDIO) == ()
    assert meant("[NEXT: carrol]", "sarah", STUDIO) == ()
    assert meant("Over to Max.", "sarah", STUDIO) == ("max",)


def test_nobody_is_meant_to_hand_over_to_itself() -> None:
    assert meant("Max, could you review this?", "max") == ()
    assert meant("[NEXT: maxx]", "max") == ()
    assert meant("Max and Sarah, could you review this?", "max") == ("sarah",)


def test_words_to_the_only_person_need_no_key_since_the_reply_goes_there() -> None:
    assert meant("Kim, could you confirm?") == ()
    assert meant("`[NEXT: kim]`") == ("kim",)
    assert meant("Ana, could you confirm?", "max", STUDIO) == ("ana",)


@pytest.mark.parametrize("text", ["`[NEXT: ana]`", "[NEXT: anna]", "Ana, could you confirm?"])
def test_a_hand_over_to_whom_the_reply_returns_anyway_is_not_missed(text: str) -> None:
    max_ = STUDIO.member("max")

    assert missed_hand_over(text, max_, STUDIO, returns_to="ana") is None
    assert missed_hand_over(text, max_, STUDIO, returns_to="kailai") is not None


def test_a_hand_over_to_somebody_else_too_is_missed_wherever_the_reply_returns() -> None:
    max_ = STUDIO.member("max")

    both = missed_hand_over("Ana and Carol, could you confirm?", max_, STUDIO, returns_to="ana")
    behind_it = missed_hand_over("Over to Carol. [NEXT: anna]", max_, STUDIO, returns_to="ana")

    assert both is not None
    assert both.members == ("ana", "carol")
    assert behind_it is not None
    assert behind_it.members == ("carol",)


@pytest.mark.parametrize("text", ["Done.\n\n\\[NEXT: sarah\\]\n", "It works. \\[NEXT: sarah]", "\\[NEXT: sarah\\]"])
def test_an_escaped_marker_at_the_end_was_meant(text: str) -> None:
    assert meant(text) == ("sarah",)


@pytest.mark.parametrize(
    "text",
    [
        "Such a marker is written \\[NEXT: sarah\\]",
        "You end a reply with \\[NEXT: sarah\\]",
        "\\[NEXT: sarah\\] is how it ends there, and the tests for that are all in place now.",
        "> \\[NEXT: sarah\\]",
        "It works. \\[NEXT: somebody\\]",
    ],
)
def test_another_escaped_marker_is_text(text: str) -> None:
    assert missed(text) is None


def test_people_miss_hand_overs_too() -> None:
    assert meant("Sarah, could you review this?", "kim") == ("sarah",)


def test_common_words_are_names_only_with_an_at_sign() -> None:
    team = read_team(
        '[[member]]\nname = "you"\n[[member]]\nname = "me"\n[[member]]\nname = "max"\nagent = "claude"\n'
        '[[member]]\nname = "IS"\nagent = "codex"'
    )

    assert meant("Over to you.", "max", team) == ()
    assert meant("Over to @you.", "max", team) == ("you",)
    assert meant("What I need is to know more.", "max", team) == ()
    assert meant("Over to IS.", "max", team) == ("IS",)


@pytest.mark.parametrize(
    "text",
    [
        "Sarah, could you review this?\n\nIt is small.\n\nIt has tests.\n\nIt is fast.",
        f"Over to Sarah. {'It works. ' * 300}",
        f"{'very ' * 150}long, over to Sarah",
    ],
)
def test_only_the_last_words_count(text: str) -> None:
    assert missed(text) is None


@pytest.mark.parametrize(
    "text",
    [
        "Over to Sarah.\n\n```diff\n- a\n+ b\n```",
        "Over to Sarah.\n\nThanks!",
        "Over to Sarah.\n\n---\n",
        "Sarah, could you check these?\n\n- one\n- two\n- three",
        "Could you check,\nSarah?",
        "@sarah Here are the numbers. Please check them.",
        "@sarah Here are the numbers. Do you agree?",
        "@sarah 数据在这里。请看一下。",
        "Over to Sarah.\r\n\r\nThanks!\r\n",
        "👉 **Over to Sarah!**",
        "I could not test this, over to Sarah.",
        "[TEAM_TASK: ship] Over to Sarah.",
    ],
)
def test_they_count_whatever_follows_or_surrounds_them(text: str) -> None:
    assert meant(text) == ("sarah",)


def test_members_come_in_the_order_they_are_named() -> None:
    assert meant("Carol, please test this. Then over to Sarah.") == ("carol", "sarah")
    assert meant("[NEXT: sahra, crol, srah]") == ("sarah", "carol")


def test_a_quote_is_short_and_on_one_line() -> None:
    for text in (f"Sarah, could you {'really ' * 60}look?", f"[NEXT: sarah {'x' * 90}\n]", "Over to\nsarah, please."):
        found = missed(text)
        assert found is not None
        assert len(found.quote) <= LONGEST_QUOTE
        assert "\n" not in found.quote


PIECES = st.one_of(
    st.sampled_from([*HANDING, *ASKING]),
    st.sampled_from(
        ["Sarah", "@max", "Carol,", "kim", "Ana Lucía", "Sarah (backend)", "max's", "小明", "\ue000", "\0"]
    ),
    st.sampled_from(
        ["[NEXT: sarah]", "[NEXT: sahra]", "[NEXT: ", "]", "[DROP: ALL]", "[TEAM_TASK]", "［NEXT：carol］"]
    ),
    st.sampled_from(
        ["`", "```", "~~~", "> ", "\n", "\n\n", "- ", "| ", '"', "“", "”", "'", "*", ". ", "? ", ", ", "。"]
    ),
    st.text(max_size=12),
)
TEXTS = st.lists(PIECES, max_size=14).map("".join) | st.lists(PIECES, max_size=14).map(" ".join)
LONG_LINE = "It is long. " * (LONGEST_ENDING // 12 + 1)
SENDERS = st.sampled_from([(team, member) for team in TEAMS.values() for member in team.members])


@given(text=TEXTS, who=SENDERS)
def test_any_text_gives_nothing_or_members_that_the_sender_may_address(text: str, who: tuple[Team, Member]) -> None:
    team, sender = who

    found = missed_hand_over(text, sender, team)

    if found is not None:
        others = {member.name for member in team.members} - {sender.name}
        allowed = others if sender.may_address is None else others & set(sender.may_address)
        assert found.members
        assert set(found.members) <= allowed
        assert len(set(found.members)) == len(found.members)
        assert 0 < len(found.quote) <= LONGEST_QUOTE
        assert found.sentence.startswith(sender.name)


@given(text=TEXTS)
def test_no_text_behind_a_working_marker_suggests_anything(text: str) -> None:
    assert missed(f"[NEXT: sarah]\n\n{text}") is None


@given(text=TEXTS, line_break=st.sampled_from(["\n", "\r\n", "\r"]), before=st.sampled_from(["", LONG_LINE]))
def test_no_text_in_a_quote_suggests_anything(text: str, line_break: str, before: str) -> None:
    quoted = line_break.join(f"> {before}{line}" for line in text.splitlines())

    assert missed(f"It says:{line_break * 2}{quoted}") is None


@given(text=TEXTS)
def test_no_words_in_a_code_block_suggest_anything(text: str) -> None:
    found = missed(f"It says:\n\n``````\n{text.replace('```', '')}\n``````\n\nThat was all of it.")

    assert found is None


MEBIBYTE = 1 << 20


@pytest.mark.parametrize(
    "piece",
    [
        "x",
        "\n",
        " ",
        "`",
        "```\n",
        '"',
        "'",
        "“",
        "> ",
        "- ",
        "|",
        "*",
        "a.",
        "。",
        "@",
        "\0",
        "\ue000",
        "[NEXT: ",
        "[NEXT: zzz]",
        "[DROP: x]",
        "`[NEXT: sarah]`",
        "```\n[NEXT: sarah]\n",
        "Sarah, ",
        "@sarah ",
        "Sarah and ",
        "over to ",
        "Sarah, could you ",
        "you, Sarah? ",
        "I'll hand the ",
        "next ",
        "请",
        "交给",
        "the my to ",
    ],
)
def test_a_mebibyte_of_anything_takes_no_longer_than_reading_it_a_few_times(piece: str) -> None:
    for text in (piece * (MEBIBYTE // len(piece)), piece * (MEBIBYTE // len(piece)) + "Sarah"):
        found = missed(text)
        assert found is None or found.members


def test_a_mebibyte_in_one_marker() -> None:
    assert missed(f"[NEXT: {'sarah ' * (MEBIBYTE // 6)}]") is None
    assert missed(f"[NEXT: {', '.join(f'm{number}' for number in range(5_000))}]") is None


def test_however_long_a_reply_only_its_ending_is_searched_for_words(monkeypatch: pytest.MonkeyPatch) -> None:
    searched: list[str] = []

    def noted(sentence: str) -> list[re.Match[str]]:
        searched.append(sentence)
        return hand_overs(sentence)

    monkeypatch.setattr("bullpen.routing.missed_hand_overs.hand_overs", noted)
    found = missed("Carol, could you look at this? " * (MEBIBYTE // 30))

    assert found is not None
    assert found.members == ("carol",)
    assert 0 < len("".join(searched)) <= LONGEST_ENDING


def calls_during(action: Callable[[], object]) -> int:
    """Count the calls, of Python and of C, that an action makes."""
    calls = 0

    def count(_frame: object, event: str, _argument: object) -> None:
        nonlocal calls
        calls += event in ("call", "c_call")

    sys.setprofile(count)
    try:
        action()
    finally:
        sys.setprofile(None)
    return calls


@pytest.mark.parametrize(
    "reply",
    [
        lambda size: f"[NEXT: {', '.join(f'm{number}' for number in range(size))}]",
        lambda size: " ".join(f"[NEXT: m{number}]" for number in range(size)),
        lambda size: "\n\n".join("Sarah, could you review `this`?" for _ in range(size)),
        lambda size: "\n\n".join(f"`[NEXT: m{number}]`" for number in range(size)),
        lambda size: "\\[NEXT: sarah\\] " * size,
    ],
    ids=["names", "markers", "words", "code", "escaped"],
)
def test_four_times_the_reply_is_at_most_four_times_the_work(reply: Callable[[int], str]) -> None:
    missed(reply(1))
    small, large = reply(2_000), reply(8_000)

    assert calls_during(lambda: missed(large)) <= 4.2 * calls_during(lambda: missed(small))


def test_no_name_out_of_many_is_compared_with_every_member(monkeypatch: pytest.MonkeyPatch) -> None:
    compared: list[str] = []

    def noted(word: str, known: Iterable[str], limit: int = 3) -> tuple[str, ...]:
        compared.append(word)
        return nearest(word, known, limit)

    monkeypatch.setattr("bullpen.routing.resolver.nearest", noted)
    monkeypatch.setattr("bullpen.routing.name_patterns.nearest", noted)
    missed(f"[NEXT: {', '.join(f'm{number}' for number in range(5_000))}]")

    assert 0 < len(compared) <= MOST_NAMES


def test_a_hand_over_that_leads_to_full_permissions_says_so() -> None:
    boss = Member(name="boss", type="ai", permissions="full")
    scout = Member(name="scout", type="ai")
    trusted = Member(name="trusted", type="ai", may_address=("boss", "scout"))
    team = Team(name="shop", lead="scout", members=(Member(name="kim", type="human"), scout, boss, trusted))

    for sender, name, needs_yes in ((scout, "boss", True), (scout, "trusted", False), (trusted, "boss", False)):
        found = missed_hand_over(f"Over to {name}.", sender, team)
        assert found is not None
        assert (found.members, found.needs_yes) == ((name,), needs_yes)
