"""The phrases with which agents hand over the next turn, in English and Chinese: two tables, and their exceptions.

Every name in a sentence is first replaced by one character, the stand-in, so the tables are the same for every team. A
false suggestion interrupts people and a missed one does not: when in doubt, no row matches.
"""

import re
from functools import cache

# From the private use area: it does not occur in ordinary text.
STAND_IN = "\ue000"
_NAME = f"@?{STAND_IN}"


def _any_of(words: str) -> str:
    return f"(?:{'|'.join(words.split(', '))})"


# What {word} means in the tables. Sentences come with single spaces and straight apostrophes.
_PARTS = {
    "who": f"(?P<who>{_NAME}(?:{{and}}{_NAME})*+)(?!'| ?的)",
    "whose": f"(?P<who>{_NAME})'s",
    "and": "(?: ?[,、&] ?(?:and |then )?| (?:and|then|plus) | ?[和与及跟] ?| (?=@))",
    # Where a clause begins: "it carried over to Sarah" is not a hand-over, "…, so over to Sarah" is.
    "begin": r"(?:{first}|[,;:—–(→>] ?| --? |\b{filler}[,!:]?+ )",
    "begin_zh": "(?:{first}|[，,；;：:、！!— ] ?)",
    "first": rf"^[^\w@{STAND_IN}]*+(?:(?:so|and|now|ok|okay|hey|hi|hello),?+ )?+",
    "filler": _any_of("and, but, from here, hey, hi, next, now, ok, okay, so, thanks, then, with that"),
    # What may follow a name: "back to max speed" is not a hand-over.
    "end": r"(?= ?(?:$|[^\w ']|(?-i:[\u4e00-\u9fff])|{continues}\b))",
    "continues": _any_of(
        "after, again, and, as, at, because, before, can, first, for, from, here, if, in, later, next, now, on, once, "
        "please, should, since, so, then, to, tomorrow, unless, until, when, who, will, with"
    ),
    "stop": rf"[^\w{STAND_IN}]*+$",
    "I_will": r"\b(?:I'll|I will|I'm going to|I am going to|we'll|we will|let me|let's|let us)(?: (?:now|then|just))?+",
    "I_am": "(?:I'm |I am )?+(?:now )?+",
    "hand": _any_of(
        "assign, bounce, defer, delegate, escalate, forward, hand, kick, leave, pass, return, route, toss, transfer, "
        "turn"
    ),
    "handing": _any_of(
        "assigning, bouncing, deferring, delegating, escalating, forwarding, handing, kicking, leaving, passing, "
        "returning, routing, tossing, transferring, turning"
    ),
    "it": r"(?: (?:this|it|that|things|everything|control|(?:the|my)(?: (?!to\b)\w++){1,3}+))?+",
    "over_to": "(?: (?:over|off|back|on|along|down))?+ to (?:the )?+",
    "next": r"(?:up next|next(?: up| in line)?+) ?(?:[:：,→—–-]++|is|we have)",
    "i_need": r"\b(?:I'd like|I need|needs|ready for|requesting)",
    "opinion": r"(?:\w++ )?{opinions}\b",
    "opinions": _any_of(
        "approval, confirmation, decision, eyes, feedback, help, input, look, opinion, review, sign-?off, take, "
        "thoughts, verdict"
    ),
    "right_after": "(?: ?[,:：，—–-]++ ?| ){gap}(?:(?:when|whenever|if|since|as) you [^,]*+, ?)?(?:both )?+",
    # Left out between an address and a request: "@sarah, … please review".
    "gap": "(?:… )?+",
    "request": r"(?:{please}|{could_you}|{i_would_like}|{you_can}|{your_turn}\b|(?:it's |this is )?ready for you)",
    "please": r"(?:please|pls|kindly)(?! {nothing_to_do}\b)",
    "nothing_to_do": _any_of(
        "accept, be aware, bear, correct me, disregard, do not, don't, excuse, find, forgive, hold, ignore, keep, "
        "never, no, note, remember, see, stand by, stop, wait"
    ),
    "could_you": r"(?:could|can|would|will) you\b(?! (?:believe|imagine|see)\b)",
    "i_would_like": r"I'd (?:appreciate|like|love|value) (?:a|another|your)\b",
    "you_can": r"you can (?:now )?(?:begin|continue|go ahead|pick|proceed|start|take)\b",
    "your_turn": _any_of(
        "all yours, any thoughts, back to you, do you mind, go ahead, it's all yours, it's your turn, it's yours, "
        "over to you, take it, take over, take this, the floor is yours, thoughts, wdyt, what do you think, "
        "what's your take, you are next, you are up, you're next, you're up, your input, your move, your opinion, "
        "your thoughts, your turn, your view"
    ),
    "do": r"{doing}\b{something}\b",
    "doing": _any_of(
        "add, check, compare, confirm, continue, document, finish, fix, have a look, implement, investigate, look at, "
        "measure, merge, pick up, proceed, rebase, remove, rerun, review, run, start, take a look, test, try, update, "
        "verify, write"
    ),
    "something": " (?:a|again|all|an|and|both|for|it|my|on|that|the|these|this|those|whether|with|your)",
    "ask": r"(?:any|are|can|could|did|do|does|has|have|how|is|may|shall|should|wh\w++|would)\b",
    "give_zh": "(?:交给|转交给|移交给|交接给|交还给|交回给|转给|转交|移交|交由|传给|抛给|派给)",
    "next_zh": "(?:接下来|下一步|下面|后续)(?:[请由让换看是：:]|交给|麻烦)++",
    "please_zh": "(?:(?<![申邀聘])请|麻烦|烦请|劳烦|拜托|有请)",
    "could_you_zh": "(?:请(?![假求教客示勿了]|不要|忽略|注意|放心)|麻烦|劳烦|拜托|帮忙|帮我|辛苦(?!了|啦|你)|"
    "能否|能不能|可否)",
    "you_do_zh": "(?:你(?:来|看|帮|先|再|接着|继续|确认|检查|怎么看|觉得)|轮?到你|该你|就?交给你)",
    "your_turn_zh": "(?:交给你|到你|轮到你|该你|看你的|拜托|你来|你怎么看|你觉得)[了啦吧呢]?+",
}

# An example, and the pattern that finds it: the sender hands over to somebody.
HANDING = {
    "over to Sarah": "{begin}(?:it's )?(?:over|back|on) to {who}{end}",
    "I'll hand it over to Max": "{I_will} {hand}{it}{over_to}{who}{end}",
    "passing this to @max": "{begin}{I_am}{handing}{it}{over_to}{who}{end}",
    "sending this back to Max": "{begin}{I_am}sending(?: it| this)?+ (?:back|over) to {who}{end}",
    "next up: Carol": "{begin}{next} ?{who}{end}",
    "[NEXT carol]": r"[\[［【(（<] ?next ?[:：=→>-]*+ ?{who} ?[\]］】)）>]",
    "→ Max to fix": r"^(?:→|->|=>) ?{who}(?= to \w|{stop})",
    "@sarah": "{first}(?=@){who}{stop}",
    "Sarah is up next": "{begin}{who} (?:is|are) (?:up next|up(?=[.!,]|$)|next(?! to))",
    "it's Sarah's turn": "{begin}(?:(?:now )?it's )?{whose} turn(?= now| next| to|[.!,]|$)",
    "time for Carol to test it": r"{begin}(?:it's )?time for {who} to \w",
    "I'd like Sarah to weigh in": r"\b(?:I'd like|I want|I need|I'd like to ask) {who} to (?!be\b)\w",
    "I'll let Max fix that": r"{I_will} (?:ask|get|have|let) {who} (?!be\b|know\b|to be\b)\w",
    "ready for Sarah's review": "{i_need} {whose} {opinion}",
    "ready for Sarah to review": r"\bready for (?:(?:review|testing) by )?{who}{end}",
    "Carol can take it from here": r"{begin}{who} (?:can|should) (?:now )?(?:continue|pick|proceed|take)\b[^,;]*?\b"
    "(?:from here|next|now|over|up){stop}",
    "交给 Max": "{give_zh} ?{who}",
    "接下来由 Sarah 检查": "{next_zh} ?{who}",
    "由 Carol 来接手": "[由让] ?{who} ?来",
    "轮到 Sarah 了": "(?:轮到|该|换) ?{who} ?(?:了|来|上场|接手)",
    "下一位：Sarah": "下一(?:位|个|棒) ?(?:[:：]|是) ?{who}",
    "Sarah 可以开始测试了": "{begin_zh}{who} ?可以(?:开始|接手|动手|继续)[^，,。]{0,6}?了",
}

# Somebody is asked to do something, or to answer.
ASKING = {
    "Sarah?": r"{first}{who}\?$",
    "Sarah, could you review this?": "{begin}{who}{right_after}{request}",
    "Sarah, review the diff": "{begin}{who} ?[,—–-] ?{do}",
    "@sarah review the diff": "{begin}(?=@){who}{right_after}{do}",
    "Sarah, which one is it?": r"{first}{who} ?[,—–-] ?{gap}{ask}[^?]*+\?$",
    "Sarah do you agree?": r"{first}{who} (?:are|can|could|did|do|have|would) you\b[^?]*+\?$",
    "does that fit your plan, Sarah?": rf"{{first}}[^?]*?\byour?\b[^?]*?(?<!{STAND_IN}), {{who}}\?$",
    "over to you, Sarah": "{begin}{your_turn}(?: away)?+[, —–-]++{who}",
    "this one is yours, Sarah": r"\b(?:is|are) (?:all )?yours[, —–-]++{who}{stop}",
    "please review this, Sarah": r"{begin}(?:{please}|{could_you})\b[^?]*?(?:, | (?=@)){who}{stop}",
    "can @sarah take a look?": r"{first}(?:can|could) (?=@){who} (?:please )?{doing}\b",
    "请 Sarah 看一下": "{please_zh} ?{who}",
    "请检查 @sarah": "{please_zh}[^，,。@]{1,20}+(?=@){who}{stop}",
    "@sarah 请看一下": "{begin_zh}{who} ?[，,：:]? ?{gap}{could_you_zh}",
    "Sarah 你来 review 一下": "{begin_zh}{who} ?[，,：:]? ?{gap}{you_do_zh}",
    "@sarah 看一下": "{begin_zh}(?=@){who} ?[，,：:]? ?[^，,。]{0,8}?(?:一下|看看|吧)",
    "交给你了，Max": "{your_turn_zh} ?[，,] ?{who}",
}

# What voids a match. Before it in the sentence: a condition, a question to somebody else, an example.
_CONDITION = (
    r"\b(?:if|unless|once|when(?! you)|whenever|as soon as|until|in case|should (?:I|we)|shall (?:I|we)|want|"
    r"would you like|you (?:can|could|may|might|should)|either|instead of|rather than|for example|e\.g\.|after that)\b"
    "|如果|要是|假如|若是|的话|要不要|是否|是不是|或者|等到|等[^，,。]{1,20}?[后再完]|之后|以后"
)
# Before it in its clause: a denial, the past, a mere possibility.
_DENIAL = (
    r"(?:\b(?:no|not|never|nothing|cannot|without|already|would|might|could|before|about)\b|n't\b|不用|不必|无需|无须|"
    "不需要|没有|没把|还没|不要|别|不能|不会|不再|不是|已经|已|之前|先前|以前|当时|上次|上周|昨天|刚才|曾|原本|本来|"
    r"可以|建议|考虑)(?:(?!\b(?:so|but)\b)[^,;:—–，；：])*+$"
)
# After it.
_LATER = (
    r"\b(?:unless|once|when|after|until|as soon as|tomorrow|later|next (?:week|time|sprint|month|year))\b"
    r"|(?<!check )(?<!see )(?<!verify )(?<!confirm )(?<!know )(?<!decide )\bif\b"
    r"|^[^,;:—–]*\b(?:would|could|might|costs?|means|as an?|was|were)\b|^[^，,]*吗"
)
_OPTIONAL = r"\bif you (?:want|like|prefer|wish|agree)\b|\bno need\b"
_PAST = "^[^，,]{0,12}过(?![来去程期滤一目])"

_ADDRESS_BEFORE = "(?:(?:thanks|thank you|hi|hey|hello)[,!]? )?@?"
_REQUEST_BEGINS = "(?:{please}|{could_you}|do you|what do you think|any thoughts|{please_zh}|你(?:来|看|帮))"


def hand_overs(sentence: str) -> list[re.Match[str]]:
    """Return where a sentence hands over, in order; the group "who" holds a stand-in for each member meant."""
    found = [
        match
        for table, exceptions in ((HANDING, _LATER), (ASKING, _OPTIONAL))
        for pattern in table.values()
        for match in _compiled(pattern).finditer(sentence)
        if not _is_void(match, exceptions)
    ]
    return sorted(found, key=lambda match: match.start("who"))


def is_address(sentence: str, name: tuple[int, int]) -> bool:
    """Return whether a sentence starts by addressing the member with this name: "@sarah …", "Sarah, …"."""
    before, after = sentence[: name[0]], sentence[name[1] :]
    speaks_to = before.endswith("@") or after.startswith((",", "，"))
    return speaks_to and _compiled(_ADDRESS_BEFORE).fullmatch(before) is not None


def is_request(sentence: str) -> bool:
    """Return whether a sentence starts by asking for something, no matter of whom."""
    return _compiled(_REQUEST_BEGINS).match(sentence) is not None


def _is_void(match: re.Match[str], exceptions: str) -> bool:
    # With the match's first character: if that is a comma, a denial before it belongs to another clause.
    before, after = match.string[: match.start() + 1], match.string[match.end("who") :]
    rules = ((_CONDITION, before), (_DENIAL, before), (exceptions, after), (_PAST, after))
    return any(_compiled(pattern).search(part) for pattern, part in rules)


@cache
def _compiled(pattern: str) -> re.Pattern[str]:
    while (expanded := re.sub(r"\{([a-zA-Z_]+)\}", lambda part: _PARTS[part[1]], pattern)) != pattern:
        pattern = expanded
    return re.compile(pattern, re.IGNORECASE)
