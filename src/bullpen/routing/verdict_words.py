"""What a reviewer means who gives no [VERDICT: …]: plain words in English and Chinese, read with care.

An approval that was not meant ends a review too early, and a missed one only asks a person: when in doubt, there is no
verdict. A sentence speaks for approval, for changes, or against taking anything for an approval ("doubt").
"""

import re
from functools import cache
from typing import Literal

from bullpen.markers.code import hide_code
from bullpen.markers.grammar import Verdict
from bullpen.markers.stripping import strip_all_markers
from bullpen.routing.last_sentences import all_sentences

MOST_READ = 20_000
"""Characters of a reply. In a longer one without a verdict, nobody looks for one."""

Leaning = Literal["approve", "changes", "doubt"]

_FIX = (
    "add|address|adjust|avoid|change|clean|correct|cover|delete|document|drop|extract|fix|guard|handle|implement|make|"
    "move|provide|refactor|remove|rename|replace|resolve|restore|revert|rework|rewrite|simplify|split|test|undo|update|"
    "use|validate|write"
)
_FIXED = (
    "added|addressed|adjusted|changed|cleaned up|corrected|covered|deleted|documented|fixed|handled|moved|removed|"
    "renamed|replaced|resolved|restored|reverted|reworked|rewritten|simplified|split|tested|updated"
)
_FIX_ZH = "修改|修复|修正|改|回退|回滚|撤销|撤回|调整|补充|补上|重写|删除|删掉|去掉|添加|加上|处理|解决|完善|返工"

_APPROVES = (
    r"\blgtm\b|\bship it\b|(?<!\w)\+1(?!\d)|\blooks? (?:very |really |pretty )?(?:good|great|fine)\b"
    r"|(?:^\W*|[,;:.!—–]\W{0,9})(?:approved?|approval granted)\b(?! (?:flag|field|state|status|list|by)\b)"
    r"|\bI(?:'m| am| have|'ve)?(?: can| now| hereby| therefore| fully| happily| gladly)* approv(?:e|ed|ing)\b"
    r"|\b(?:it|this|that|everything|all|change|patch|diff|pr|mr|code|work|version|verdict)(?:'s| is| are)?"
    r"(?: now| hereby)? approved?\b"
    r"|\b(?:good|ready|fine|safe|ok|okay) to (?:go|merge|ship|land|be merged|be shipped)\b"
    r"|\b(?:can|may|should) be (?:merged|shipped)\b|\bplease (?:merge|ship)\b"
    r"|\bno (?:further |more |other |remaining )?(?:changes|issues|concerns|objections|problems|findings)"
    r"(?: (?:are |were |is )?(?:needed|required|requested|necessary|left|remain|found|from me|from my side))?"
    r"(?=\W*$|[,;] )"
    r"|\bnothing (?:else |more |left )?to (?:change|fix|add)\b"
    r"|可以(?:合并|上线|发布|提交|合入)|同意合并|(?:审查|评审|审核|检查|验收)(?:已经?)?通过|^\W*(?:通过|批准|同意)[了\W]*$|批准"
    r"|没有?(?:其他|别的|任何)?问题|看起来(?:很|挺)?(?:好|不错)|(?:无需|不需要|不用|不必)(?:再|任何)?(?:修改|改动|改)"
)
_ASKS_FOR_CHANGES = (
    rf"\b(?:please|pls|kindly|you (?:must|need to|have to|should)|must|needs? to|has to|have to|should)"
    rf"(?: also| still| then| first| just)? (?:be )?(?:{_FIX}|{_FIXED})\b"
    rf"|^(?:\W*\d+[.)])?\W*(?:\w+, (?:please )?)?(?:{_FIX})\b(?! (?:is|was|looks|has)\b)"
    r"|\bneeds? (?:\w+ )?(?:work|changes|fixing|fixes|a fix|another (?:round|look|pass))\b"
    r"|\bchanges (?:are |were )?(?:requested|required|needed|necessary)\b|\brequest(?:ing|ed)? (?:some )?changes\b"
    r"|\bverdict\W+(?:is )?changes\b"
    r"|\bnot (?:yet )?(?:ready|done|finished|good enough|acceptable|correct|there yet)\b"
    r"|\b(?:isn't|aren't|is not|are not) (?:yet )?(?:ready|done|good enough|acceptable|correct)\b"
    r"|\b(?:reject(?:ed|ing)?|veto(?:ed)?)\b|\bblocking (?:issue|problem|bug|concern)s?\b"
    rf"|(?:需要|请|必须|应该|应当|还要|还得|麻烦|建议)(?:你|先|再|把[^，,。]{{1,20}}?|将[^，,。]{{1,20}}?)?(?:{_FIX_ZH})"
    r"|不能合并|不可以合并|不可合并|不予通过|打回|退回|驳回|(?:还|仍)(?:有|存在)[^，,。]{0,10}问题|不行"
)
_REFUSES = (
    r"(?:\b(?:not|never|cannot|can not|unable|refuse|decline|withhold\w*)\b|n't\b)(?: \w+){0,3}?"
    r" approv(?:e|ed|ing|al)\b"
    r"|\b(?:not|never|don't|do not|cannot|can't|please don't) (?:yet )?(?:be )?(?:merged?|ship(?:ped)?)\b"
    r"|\bunapproved\b"
    r"|(?:不|未|没有?|暂不|尚未|别)(?:能|会|予|要|可以?|应该?|同意)?(?:通过|批准|合并)(?!测试)"
    r"|我拒绝|拒绝(?:通过|批准|合并)"
)
_NOT = r"(?:\b(?:no|not|never|cannot|without|hardly|nothing|nobody|neither|none)\b|n't\b|不|未|没|别|尚)"
"""Before an approval, in its clause."""
_NO_CHANGES = r"\b(?:no|not|nothing|never|none|neither|without)\b|n't\b|无需|不需要|不用|不必|没有"
"""Before what asks for changes: it asks for none."""
OPTIONAL = (
    r"\boptional(?:ly)?\b|\bnits?\b|\bnitpick|可选|以后|后续|将来"
    r"|\bnon-?blocking\b|\bif you (?:like|want|prefer)\b|\bfollow-?up\b|\blater\b|\bin (?:the|a) future\b"
)
"""In a sentence that asks for nothing that must be done."""
_DOUBT = (
    r"\b(?:if|unless|once(?! more| again)|until|after|when|whether|before|provided|assuming|as soon as|as long as)\b"
    r"|\b(?:would|could|might|may have|will|'ll|going to|want to|like to|tempted to|hope to)\b"
    r"|\b(?:but|however|except|apart from|aside from|other than|although|though|still|only)\b"
    r"|\bone (?:thing|issue|problem)\b"
    r"|\b(?:so far|mostly|almost|nearly|partly|partially|at first glance|except for)\b"
    r"|\b(?:says?|said|claims?|claimed|thinks?|according to|wrote|asked|previous(?:ly)?|earlier|last time|already|was|"
    r"were|had)\b|\bapproved? (?:or|and/or)\b|\bor approve\b|/ ?(?:changes|approve)|\?\W{0,9}$"
    r"|\bwith (?:\w+ )?(?:changes|comments|reservations|caveats|conditions)\b|\b(?:not|neither|nor)\b|n't\b"
    r"|如果|要是|的话|除非|之后|以后|[后才再]可以|才能|但|不过|然而|除了|只是|基本|大体|大致|部分|是否|是不是|能否|吗|？|之前|上次"
)
_OPENS_DOUBT = (
    r"^\W*(?:but|however|except|still|although|但|不过|然而)|(?:\b(?:would|could|might|will)|'d|'ll) (?:\w+ )?approve\b"
)
_DEFECT = (
    r"\b(?:bugs?|broken|breaks?|crash(?:es|ed)?|fails?|failed|failing|missing|wrong|incorrect|vulnerab\w+|insecure|"
    r"leaks?|regressions?|injections?|data loss|overflows?|"
    r"backdoors?|typos?|security (?:hole|issue|problem)s?|problems?|mistakes?)\b"
    r"|有(?:个|一个|些|一些)?(?:问题|错误|漏洞)|缺少|失败|出错|崩溃"
)
_NO_DEFECT = (
    r"\b(?:no|not|none|never|nothing|without|zero|fix(?:ed|es)?|resolved|handled|gone|corrected|now|pass(?:es|ed)?|"
    r"correctly)\b|n't\b|没有|没|不|已|修复|解决"
)


def verdict_in_words(text: str) -> Verdict | None:
    """Return the verdict that a reply without [VERDICT: …] gives in plain words; None if that is not clear."""
    words = strip_all_markers(text)
    if len(words) > MOST_READ:
        return None
    leanings = [leaning for one in all_sentences(words, hide_code(words)) if (leaning := leaning_of(one))]
    if "changes" in leanings:
        # Somebody who approves after asking for changes may mean that they were made.
        return "changes" if "approve" not in leanings or leanings[-1] == "changes" else None
    return "approve" if leanings and set(leanings) == {"approve"} else None


def leaning_of(sentence: str) -> Leaning | None:
    """Return what a sentence speaks for; None if for nothing."""
    asks = _asks_for_changes(sentence)
    approval = found(_APPROVES, sentence)
    is_refused = found(_REFUSES, sentence) is not None or (approval is not None and _is_negated(sentence, approval))
    if is_refused:
        return "doubt" if found(r"\?\W{0,9}$|[吗？]", sentence) else "changes"
    if asks:
        return "changes"
    if approval is not None:
        return "doubt" if found(_DOUBT, sentence[: approval.start()] + sentence[approval.end() :]) else "approve"
    opens_doubt = found(_OPENS_DOUBT, sentence)
    has_defect = found(_DEFECT, sentence) and not found(_NO_DEFECT, sentence)
    return "doubt" if opens_doubt or has_defect else None


def _asks_for_changes(sentence: str) -> bool:
    asked = found(_ASKS_FOR_CHANGES, sentence)
    if asked is None or found(OPTIONAL, sentence):
        return False
    return found(_NO_CHANGES, sentence[: asked.end()]) is None or found(r"\bnot\b|n't\b", asked[0]) is not None


def _is_negated(sentence: str, approval: re.Match[str]) -> bool:
    """Return whether what looks like an approval is denied: in its own clause, before it."""
    # If the approval begins with a comma or the like, a denial before that belongs to another clause.
    opening = re.match(r"[^\w+]*", approval[0])
    before = sentence[: approval.start() + (opening.end() if opening else 0)]
    return found(_NOT, re.split(r"[,;:—–，；：]| (?:but|and|so) ", before)[-1]) is not None


def found(pattern: str, text: str) -> re.Match[str] | None:
    """Return where a pattern occurs first, in any case."""
    return _compiled(pattern).search(text)


@cache
def _compiled(pattern: str) -> re.Pattern[str]:
    return re.compile(pattern, re.IGNORECASE)
