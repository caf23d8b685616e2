"""Search: what a person types finds what was said, in any script, and no query does harm."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from bullpen.store import search
from bullpen.store.search import query_from, words_of
from bullpen.store.sqlite import SqliteStore
from bullpen.testing.store_contract import begin, said

SAID = {
    "english": "The oldest history is dropped first; see newest_that_fit() in budget.py.",
    "phrase": "It looks\n  good to me. Nothing more, don't worry.",
    "apart": "Good work, though it looks odd.",
    "chinese": "上下文窗口需要更小，预算不够。",
    "scattered": "上下都要看，下文再说",
    "mixed": "请检查budget.py的测试结果！",
    "japanese": "コンテキストがバジェットを超えました",
    "korean": "컨텍스트 예산이 부족합니다",
    "accents": "Le café de Zürich, Ελληνικά, МОСКВА",
    "decomposed": "re\u0301sume\u0301",
    "wide": "ＡＢＣ１２３",
    "thai": "งบประมาณไม่พอ",
    "hindi": "हिन्दी में",
    "emoji": "Shipped 🚀 by 👩‍💻",
    "long": "f" * 500 + " end",
    "quotes": 'He said "AND" OR NOT NEAR(x, y)*',
}


@pytest.fixture(scope="module", params=[1, 4, 1000], ids=["all in the index", "some", "none"])
def store(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[SqliteStore]:
    """Give a store in which all, some or none of the messages have reached the index."""
    path: Path = tmp_path_factory.mktemp("search") / "bullpen.db"
    with pytest.MonkeyPatch.context() as patch, SqliteStore(path) as store:
        patch.setattr(search, "MOST_WAITING", request.param)
        begin(store, "c")
        for name, content in SAID.items():
            store.append("c", said(name, content))
        yield store


@pytest.mark.parametrize(
    ("query", "expected"),
    [
        ("history", ["english"]),
        ("HISTORY oldest", ["english"]),
        ("hist", ["english"]),
        ("story", []),
        ("history nowhere", []),
        ("newest_that_fit", ["english"]),
        ("that_fit", ["english"]),
        ("fit_that", []),
        ("budget.py", ["mixed", "english"]),
        ("looks good", ["apart", "phrase"]),
        ('"looks good"', ["phrase"]),
        ("don't", ["phrase"]),
        ("上下文", ["chinese"]),
        ("窗口", ["chinese"]),
        ("窗", ["chinese"]),
        ("小", ["chinese"]),
        ("够", ["chinese"]),
        ("口窗", []),
        ("下文", ["scattered", "chinese"]),
        ("上下文 预算", ["chinese"]),
        ("budget.py的测试", ["mixed"]),
        ("果", ["mixed"]),
        ("バジェット", ["japanese"]),
        ("ハシェット", []),
        ("예산", ["korean"]),
        ("산", ["korean"]),
        ("cafe", ["accents"]),
        ("CAFÉ zurich", ["accents"]),
        ("ελληνικα", ["accents"]),
        ("москва", ["accents"]),
        ("résumé", ["decomposed"]),
        ("abc123", ["wide"]),
        ("ａｂｃ", ["wide"]),
        ("ประมาณ", ["thai"]),
        ("हिन्दी", ["hindi"]),
        ("🚀", ["emoji"]),
        ("💻", ["emoji"]),
        ("f" * 500, ["long"]),
        ("f" * 499 + "g", []),
        ('"AND" OR', ["quotes"]),
        ("NEAR(x, y)", ["quotes"]),
    ],
)
def test_what_a_query_finds(store: SqliteStore, query: str, expected: list[str]) -> None:
    assert [found.message_id for found in store.search(query)] == expected


ODD = ["", " ", '"', '""', "'", "*", "a*", "^a", "a:b", "words:a", "{a b}:c", "a AND", "NOT", "(", "-a", "\0", "\ufffd"]
FOLDED_INTO_SEVERAL = ["％", "½", "㏂", "⑴", "ﷺ"]
LONG = ["a" * 100_000, "我" * 10_000, "a b c d e f g h i j k l m n o p q r s t u v w x y z " * 50]


@pytest.mark.parametrize("query", [*ODD, *FOLDED_INTO_SEVERAL, *LONG], ids=range(len(ODD + FOLDED_INTO_SEVERAL + LONG)))
def test_no_query_does_harm(store: SqliteStore, query: str) -> None:
    assert isinstance(store.search(query), list)


def test_every_word_is_one_for_the_index() -> None:
    # One that the index would take for two is no valid question to it.
    text = "".join(map(chr, [*range(0xD800), *range(0xE000, 0x30000)]))

    assert all(all(not sign.isascii() or sign.isalnum() for sign in word) for word in words_of(text))


def test_nothing_to_look_for() -> None:
    assert query_from("… ?! \n") is None


def test_numbers_that_are_given_again_are_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(search, "MOST_WAITING", 4)
    with SqliteStore(tmp_path / "bullpen.db") as store:
        for conversation_id in ("kept", "deleted", "new"):
            begin(store, conversation_id)
        store.append("kept", said("m0", "needle"))
        for number in range(9):
            store.append("deleted", said(f"m{number}", "needle and thread"))

        store.delete("deleted", at=1)
        for number in range(9):
            store.append("new", said(f"m{number}", "needle"))

            found = [(one.conversation_id, one.sequence) for one in store.search("needle")]
            assert found == [*(("new", sequence) for sequence in range(number + 1, 0, -1)), ("kept", 1)]
        assert store.search("thread") == []
        assert store.fsck() == []


def test_a_snippet_shows_the_surroundings(store: SqliteStore) -> None:
    before, after = "a long way to go " * 20, " and on and on" * 20
    store.append("c", said("far", f"{before}\n\nthe Treasure{after}"))
    store.append("c", said("far in Chinese", f"{'很长的路' * 50}宝藏{'继续走' * 50}"))

    (found,) = store.search("treasure")
    assert found.snippet.startswith("…")
    assert "to go the Treasure and on" in found.snippet
    assert found.snippet.endswith("…")
    (found,) = store.search("宝藏")
    assert "很长的路宝藏继续走" in found.snippet
    assert len(found.snippet) < 130
