"""What in a reply speaks against its own [VERDICT: approve]: a line that leads in to it, a refusal, a condition.

To ask once more is cheap, to approve by mistake is not.
"""

import re

from bullpen.markers.code import hide_code
from bullpen.markers.stripping import strip_all_markers
from bullpen.routing.last_sentences import all_sentences
from bullpen.routing.verdict_words import MOST_READ, OPTIONAL, found, leaning_of
from bullpen.text.clean import INVISIBLE

ENDING = "*_#> \t\r\n" + INVISIBLE
"""What may be between the last words and a verdict."""

_LEADS_IN = (
    r"(?:[:：,，;；、\-—–→=(（]|\.\.\.|…)\Z|\b(?:then|so|with|be|is|was|as|than|say|said|writes?|written|wrote|give|"
    r"given|gives|reads?|says|to|and|or|but|because|until|if|when|once|after|it|following|this)\Z"
    r"|(?:就|则|那么?|再|写|写下|写上|说|给|给出|是|为|成|后|时|会|才|并|和|或|以下|如下)\Z"
)
"""The end of a line that the marker continues: then the marker is part of what that line says."""
_LABEL = (
    r"(?:(?:my|the|our|final|overall|review)\W+)*(?:verdict|conclusion|decision|result|summary)"
    r"|(?:我的|最终|最后的?|评审|审查|审核|总体)*(?:结论|裁决|结果|意见|判断)"
)
"""A line that only names what follows it."""
_NACK = (
    r"\bNAC?K(?:ed)?\b|^\W*?[-−–]1(?![\w.%])|\bno-go\b|\bhard pass\b|^[\s*_-]*[👎❌🚫⛔🛑]|\bthumbs down\b"
    r"|^\W*(?:please |let's |so )*(?:hold|wait|stop)\b(?=\W*$| off| on| until| with| for)"
    r"|(?:^\W*|\b(?:please|should|must|but|so|to|I|we|you) )"
    r"(?:don't|do not|not|never|can't|cannot|won't|will not) (?:\w+ )?"
    r"(?:merg|ship|land|deploy|releas|approv|accept|commit|push)"
    r"|\bdisapprov|\b(?:I|we) (?:\w+ )?(?:disagree|object\b|oppose|refuse|decline|deny|veto|withhold)"
    r"|\b(?:I|we)(?:'m|'re|'d| am| are| would| will| have to| must)? (?:\w+ )?(?:block|withholding|refusing|denying)\b"
    r"|^\W*(?:[0-3](?:/| of | out of )(?:5|10)(?=\W*$)|zero stars\b)"
    r"|\b(?:I am|I'm|I'd be) against\b|\bagainst (?:merg|approv)"
    r"|\bapproval (?:is |was )?(?:withheld|denied|refused|revoked)"
    r"|^\W*(?:declined|denied|refused|rejected|nope|nah|wip|try again|start over|back to|come back|please come back)\b"
    r"|^\W*(?:(?:still|this|it|is|I|am|I'm|it's) )*block(?:ed|ing)\b|\bis (?:still )?(?:a|the) blocker\b"
    r"|\b(?:tests?|ci|build|pipeline|checks?) (?:is|are) (?:still )?red\b"
    r"|\b(?:has|have|needs?|must) (?:to )?(?:go|wait|come out)\b(?! (?:through|live|over)\b)"
    r"|\b(?:over my dead body|no way\W*$|(?:not a|no|fat) chance\b|not on my watch|forget it\W*$|dream on)"
    r"|\b(?:hell|hard) no\b|\bwhen hell freezes\b|\bnot happening\b"
    r"|不认可|不满意|不放心|(?:没法|无法|不能|没办法)(?:用|使用|工作|接受)(?!户)|用不了"
    r"|(?:改|修|补|弄)(?:完|好|了)[^，,。]{0,8}再"
    r"|^\W*(?:it |this |still )*needs? (?!no\b|nothing\b)"
    r"|(?:先别|先不|别|不要|不可|不能|不得|暂缓|暂停|暂不|勿|反对|不同意|不赞成|不接受|否决)(?:再|急着|现在|马上)?"
    r"(?:合|上线|发布|提交|通过|批准|接受|部署)|(?:我|^\W*)(?:反对(?!意见)|不同意|不赞成|不接受|否决)|有待|^\W*拒绝"
    r"|^\W*不(?!需|用|必|再|影响|错|会|存在)|^\W*待|^\W*否(?=\W|$)"
    r"|(?<![没无现])有(?:个|一个|些|一些|很|非常)*(?:严重|重大|致命)的?(?:问题|错误|缺陷|漏洞|bug)"
    r"|(?:没法|没办法|无法)通过(?!校验|验证|检查)|重新来(?:过|一遍)|推倒重来|从头再?来|^\W*重来"
    r"|(?:编译|构建|测试|CI)(?:都|也|还|根本)*不(?:过|通过)|(?:跑|运行|启动)不(?:起来|通|了|动)"
    r"|(?<!不)(?<!不再)会(?:泄[露漏]|丢失|删除|删掉|破坏)[^，,。]{0,6}(?:密钥|密码|凭证|令牌|隐私|机密|用户数据)"
    r"|^\W*(?:please |let's |\w+, )*(?:send (?:it|this|that|them) back|withdraw)\b"
    r"|\bback to (?:the drawing board|square one)\b"
    r"|\b(?:this|it|that|which|patch|change|code|commit|diff)(?: now| also| still| silently)? (?:"
    r"(?:deletes|drops|loses|destroys|wipes|corrupts) (?:(?:the|all|our|their) )*(?:user|customer|production)s?\b"
    r"|(?:leaks|exposes) (?:(?:the|all|our|their|private|api|secret) )*"
    r"(?:secrets?|passwords?|credentials|tokens?|keys?)\b)"
    # The plainest refusals in other languages.
    r"|^\W*(?:nein|non|não|nie|nej|いいえ|нет|아니요)\b(?!-)"
    r"|\b(?:abgelehnt|rejeté|rechazad[oa]|rejeitad[oa])\b|\bnicht (?:freigeben|genehmig|zustimmen|mergen)"
    r"|\b(?:ich lehne|je (?:\w+ )?refuse|je n'approuve|no apruebo|não aprovo|non approvo)\b"
    r"|не (?:одобря|утвержда)|отклон|却下|承認でき|承認しません|差し戻|반려|거부|승인할 수 없"
)
"""A refusal, wherever it is."""
_HYPOTHETICAL = (
    r"\b(?:it|this|that|verdict|which|approval)(?:'d| would| might| could) (?:be|get|become|have been|count)\b"
    r"|\b(?:I|we)(?:'d| would(?:n't)?| might| could|'ll| (?:wi|sha)ll| was going| was about"
    r"| wanted| want| wish| intend| plan| hope| expect)\b"
    r"[^,;]{0,40}?\b(?:approv|sign|say|give|write|accept)"
    r"|\b(?:supposed to|pretend|hypothetical\w*|imagine|if only|sarcas\w+|kidding|joking|changed my mind)\b"
    r"|\bsecond thoughts?\b|\b(?:asked|told|instructed|ordered|forced|asks|tells|wants|wanted) (?:me|us)\b"
    r"|\b(?:insists?|insisted) on\b|\b(?:tentative|provisional|preliminar)\w*"
    r"|\b(?:approv\w+|lgtm|fine|ok) in principle\b"
    r"|我(?:会|将|就会|本来|原本|本想|才|再|想|打算|准备|很想|可能)[^，,。]{0,15}?(?:批准|通过|同意|写|给|说|合并)"
    r"|(?:会|将会|才|就)(?:写|给|批准|通过|同意|说)|(?:让|要求|叫|要|希望)我[^，,。]{0,6}?(?:写|给|批准|通过)|假装|设想|假定"
    r"|有条件|原则上|(?:暂时|暂且|初步)(?:通过|批准|同意)"
)
"""What is not so, wherever it is, or what somebody else wants."""
_EXAMPLE = (
    r"(?m)^[ \t*_#]*(?:an? |the |my |this is (?:an? |the )?)?(?:(?:example|sample|expected)(?: \w+)?|示例|样例|例子)\w*"
    r"[ \t*_]*[:：][ \t*_]*$"
    r"(?:\n[ \t]*(?:(?:[-*+•]|\d+[.)])[^\n]*)?)*\Z"
)
"""A list that is an example, at the end: then what follows belongs to it."""
_POINTS = (
    r"\b(?:line|marker|verdict|text|words?|tag|sentence|what) (?:that |which )?(?:is )?(?:below|follows|comes next)\b"
    r"|\b(?:next|following) (?:line|marker|verdict|words?|text|tag)\b|^\W*below\b|\bthis line\b"
    r"|\b(?:ignore|disregard)\b[^,;]{0,30}?\b(?:verdict|marker|line|below|following)\b"
    r"|\bquot(?:e|ed|ing) (?:from|of|here|below)\b"
    r"|\bverdict (?:is|was) (?:void|not|a|an|only|just|quoted)\b|\bthe opposite\b(?! case)"
    r"|下面|下一行|下行|以下(?:只?是|标记|的?(?:结论|裁决))|标记(?:无效|作废)|忽略|(?:这|只|仅)是(?:引用|示例|例子|玩笑)"
)
"""In the last paragraph: a sentence about the verdict as a piece of text."""
_WHEN = r"(?:if|once|when|after)"
_CONDITION = (
    r"^\W*(?:(?:and|but|so|then|only|even|well|ok(?:ay)?|yes|approved?|fine|good|lgtm)\W+)*"
    r"(?:if|once(?! more| again)|unless|until|when(?! I\b)|whenever|as soon as|as long as|provided|providing|assuming|"
    r"suppose|supposing|let's say|in case(?! of)|pending|subject to|depending|on condition|under the condition|modulo|"
    r"given (?:a|that|green|passing)|should (?:the|it|this|you|ci|tests)|(?:were|had) (?:the|it|this|you|ci|tests)|"
    r"with (?:(?:one|a few|some|two|three) )?(?:more|another)|after (?:you|that|this is|it is|the next))\b"
    r"|\b(?:only (?:if|when|after|once)|unless|provided|providing|assuming|as soon as|as long as|(?<!no )pending|"
    r"subject to|it depends|depending on|conditional(?:ly)?|contingent|on (?:the )?condition|modulo|with the exception|"
    r"not yet|yet to|torn|unsure|uncertain|undecided|follows after)\b"
    r"|\bwith (?:the |a |an )?(?:\w+ ){1,2}(?:fixed|added|removed|changed|renamed)\b"
    r"|\bI (?:still )?have (?:\w+ )?(?<!no )(?:doubts|concerns|reservations|objections)\b"
    rf"|[,;] {_WHEN} |\b{_WHEN} (?:you|it's|this is|that is|they|ci|"
    r"the (?:tests?|build|checks?|pipeline|review|crash|bug|leak|problem|issue)s?)\b"
    r"|如果|假如|假使|假设|倘若|若|要是|只要|除非|一旦|前提|的话|[等待][^，,。]{1,30}?(?:后|再|了|完|好)|才[能会行可算给批通合]"
    r"|直到|届时|到时|还(?:没(?!有?(?:发现|问题))|未|需|要|得|差)|^\W*请?先(?:把|将|修|改|补|跑|解决|处理)"
    r"|(?:修|改|补|加|删|处理|解决|完成|测试|通过|合并|确认)[^，,。]{0,12}?(?:[后再][，,]?(?:再|就|可|我|会|没|即|批准)|了就)"
    r"|没有?(?:看|读|审|跑|运行)(?:过|了)?(?:代码|改动|测试)"
)
"""In the last paragraph: what has yet to happen, or is not known."""
_IS_SO = (
    r"\bnow\b|\bI (?:ran|checked|tried|verified)\b|\bas (?:it should|specified|documented|wanted|expected)\b"
    r"|\b(?:which|that) is (?:right|correct|intended|the point)\b|\btests? covers?\b|\b(?:is|are) (?:covered|tested)\b"
    r"|^\W*(?:it|the (?:function|code|command|parser)) (?:raises|returns|prints|exits|skips|warns|keeps)\b[^;]*"
    r"\b(?:which|that) is what (?:was|is) (?:asked|wanted|specified)"
    r"|^\W*if you ever (?:need|want)\b[^;]*\bthat(?:'s| is| would be| will be) (?:another|a separate|its own) "
    r"(?:ticket|issue|change|story|pull request|pr)\b"
    r"|现在|已|覆盖"
)
"""In a sentence about how the work behaves."""
_IS_PAST = (
    r"\bthank(?:s| you) for \w+ (?:the|a) failing (?:\w+ )?tests?\b"
    r"|\b(?:earlier|previous|old|first) (?:version|patch|attempt|commit|one) (?:failed|crashed|broke|leaked)\b"
    r"[^.;,]{0,60}[;,.] (?:but )?(?:this|the new|the current)(?: one| version| patch)? "
    r"(?:doesn't|does not|no longer does)(?=\W*$|[.!])"
    r"|之前的?失败的?(?:用例|测试)(?:现在|都|也|均|已|经)+通过(?!不)"
    r"|(?<![没未不])(?<!没有)覆盖了?失败的?(?:情况|场景|分支|路径)"
)
"""What failed before and does no more, or in a test that shows it: no doubt."""
_VERDICT_WORDS = r"\b(?:approv|verdict|merg|lgtm|ship)|批准|合并|结论"
_DENIES = r"\b(?:not|never|cannot)\b|n't\b|^\W*no\b|\bno\W*$"
_DENIES_DEFECTS = (
    r"\b(?:problem|issue|bug|concern|objection|comment|finding|change|block|fail|break|broke|crash|leak|regress|find|"
    r"found|see|seen|nit|further|longer|more|need|require|only|touch|affect|other|question|complain|warn|error|risk|miss|"
    r"wrong|optional|object|stop|any|lose|lost|depend|note|remain)"
)
"""What a reviewer who approves says is not there."""
_IS_MENDED = (
    r"\b(?:fixed|resolved|gone|corrected|solved)\b|\bapproved?,? (?:again|as before)\b|\bclear error\b"
    r"|已修|已解决|修复了|修好了"
)


def against_approval(text: str) -> str:
    """Return what in a reply speaks against its [VERDICT: approve], as the end of a sentence; empty if nothing does.

    The line before it may lead in to it, and make it part of a sentence: "If the tests pass, then:". A refusal counts
    anywhere, and a condition or a doubt in the last paragraph.
    """
    words = strip_all_markers(text)[-MOST_READ:]
    visible = hide_code(words)
    if _leads_in(words):
        return "the line before the verdict leads in to it, and makes it part of a sentence"
    sentences = all_sentences(words, visible)
    if any(leaning_of(one) == "changes" or found(_NACK, one) for one in sentences):
        return "its words ask for changes or refuse, and its verdict approves"
    closing = re.sub(_IS_PAST, "", _closing(words).replace("’", "'"), flags=re.IGNORECASE)
    last = all_sentences(closing, hide_code(closing))
    if any(found(_POINTS, one) for one in last):
        return "its last paragraph is about the verdict as a text"
    if any(map(_is_hypothetical, sentences)) or any(map(_is_conditional, last)):
        return "its words approve only in some case, and not now"
    if any(map(_denies, last)) or (_doubts(last) and not found(_IS_MENDED, closing)):
        return "its last paragraph doubts what its verdict approves"
    return ""


def _is_hypothetical(sentence: str) -> bool:
    return found(_HYPOTHETICAL, sentence) is not None and not found(OPTIONAL, sentence)


def _is_conditional(sentence: str) -> bool:
    is_about_work = found(_IS_SO, sentence) is not None and not found(_VERDICT_WORDS, sentence)
    return found(_CONDITION, sentence) is not None and not is_about_work


def _denies(sentence: str) -> bool:
    """Return whether a sentence says no to something else than defects."""
    return found(_DENIES, sentence) is not None and not found(_DENIES_DEFECTS, sentence)


def _doubts(sentences: list[str]) -> bool:
    # "I would approve" is found before; "I would read it now, and have nothing to add" is not a doubt.
    return any(leaning_of(one.replace("I would ", "I ")) == "doubt" for one in sentences)


def _leads_in(words: str) -> bool:
    """Return whether the last line that is not only a label is continued by what follows."""
    before = _without_label(words)
    return found(_LEADS_IN, before.rpartition("\n")[2]) is not None or found(_EXAMPLE, before) is not None


def _closing(words: str) -> str:
    """Return the last paragraph that is not only a label."""
    return re.split(r"\n[ \t\r]*\n", _without_label(words))[-1]


def _without_label(words: str) -> str:
    """Return a text without its last line, if that is only a label such as "My verdict:"."""
    before, _, line = words.rstrip(ENDING).rpartition("\n")
    is_label = re.fullmatch(_LABEL, line.strip("#*_:： \t\r"), re.IGNORECASE)
    return before.rstrip(ENDING) if is_label else words.rstrip(ENDING)
