"""How the words of a reply may be read: as they are, and as a person sees letters that only look like others."""

import re
import unicodedata

_HIDDEN = re.compile(
    "[\u00ad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f\u200b-\u200f\u202a-\u202e\u2060-\u206f\u3164"
    "\ufe00-\ufe0f\ufeff\uffa0\U000e0000-\U000e0fff]"
)
_LOOKS_LIKE = str.maketrans(
    "АВЕЅІЈКМНОРСТУХаеѕіјкорсухһԁԛԝɡⅼΑΒΕΖΗΙΚΜΝΟΡΤΥΧαικνορτυχϲ",
    "ABESIJKMHOPCTYXaesijkopcyxhdqwglABEZHIKMNOPTYXaiknoptuxc",
)
"""Cyrillic and Greek letters that look like Latin ones."""
_SMALL_CAPITALS = str.maketrans("ᴀʙᴄᴅᴇꜰɢʜɪᴊᴋʟᴍɴᴏᴘꞯʀꜱᴛᴜᴠᴡʏᴢ", "ABCDEFGHIJKLMNOPQRSTUVWYZ")
_MARKS = re.compile("[\u0300-\u036f\u1ab0-\u1aff\u1dc0-\u1dff\u20d0-\u20ff\ufe20-\ufe2f]")
"""Marks above, below and through letters; not those of Japanese, which make other letters."""
_SIMPLIFIED = str.maketrans(
    "請測過這沒還駁絕會讓應該須問題錯誤處刪補調並併發佈準審評後時將為認證議許復寫說給對於則無試暫緩線運結論斷見檢驗動們個來現實標記當條達點關終決",
    "请测过这没还驳绝会让应该须问题错误处删补调并并发布准审评后时将为认证议许复写说给对于则无试暂缓线运结论断见检验动们个来现实标记当条达点关终决",
)
"""Traditional characters of the words that are looked for."""


def readings(text: str) -> tuple[str, ...]:
    """Return the ways in which a text may be read, without those that are the same."""
    seen = unicodedata.normalize("NFKC", _HIDDEN.sub("", text)).translate(_SIMPLIFIED)
    plain = _MARKS.sub("", unicodedata.normalize("NFKD", seen))
    plain = unicodedata.normalize("NFC", plain).translate(_SMALL_CAPITALS).translate(_LOOKS_LIKE)
    return tuple(dict.fromkeys((text, seen, plain)))
