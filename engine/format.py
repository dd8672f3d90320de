"""Numbers and outside text as people read them; shared by the screen and the headless reporter.

One style of unit everywhere (facts/terminal.md): `15,000`, `4.9M tok`, `$10.70`, `19.6/s`,
`9m 10s`, `6.2%`. Unknown is `?`, never 0. Text from outside passes `safe_text` before it is shown.
"""

from __future__ import annotations

import unicodedata
from functools import lru_cache

UNKNOWN = "?"
_ESCAPES = {"\n": "\\n", "\r": "\\r", "\t": "\\t", "\x1b": "\\e", "\x00": "\\0"}
_MAX_SCANNED = 2000
"""Characters of an outside text that are looked at: more never fits a line of any terminal."""
_ESCAPE_FORMS = (("x", 2), ("u", 4), ("U", 8))
_DECIMAL_BELOW = 100
"""From three digits on a decimal says nothing more."""
_PERCENT_DECIMAL_BELOW = 9.95
_HUNDREDTH, _TENTH = 0.01, 0.1
"""The last digits shown."""
_MARKS = frozenset({"Mn", "Me", "Mc"})
_INVISIBLE_MARKS = ((0xFE00, 0xFE0F), (0xE0100, 0xE01EF), (0x034F, 0x034F), (0x180B, 0x180F))
_DISPUTED = (
    (0x115F, 0x11FF),  # loose Hangul vowels and finals, fillers
    (0xD7B0, 0xD7FF),
    (0x3164, 0x3164),
    (0xFFA0, 0xFFA0),
    (0x2630, 0x2637),  # trigrams and tallies: wide since Unicode 16
    (0x268A, 0x268F),
    (0x4DC0, 0x4DFF),
    (0x1D300, 0x1D37F),
    (0x1D15E, 0x1D164),  # music that is composed of marks
    (0x1D1BB, 0x1D1C0),
    (0x1F1E6, 0x1F1FF),  # the letters that flags are made of
    (0x1F3FB, 0x1F3FF),  # skin tones
)
"""Code points whose width differs between terminals; they are shown as escapes."""


def thousands(number: int) -> str:
    """A whole number with separators: `15,000`."""
    return f"{number:,}"


def compact(number: float) -> str:
    """A large number in at most six characters: `812`, `9.9k`, `4.9M`, `12.4M`, `1.2B`.

    Rounds down, so that a budget never looks reached before it is; exact multiples drop the
    decimal (`10M`).
    """
    for unit, size in (("B", 10**9), ("M", 10**6), ("k", 10**3)):
        if abs(number) >= size:
            tenths = int(number * 10 // size)
            whole = number % size == 0 or tenths // 10 >= _DECIMAL_BELOW
            return f"{tenths // 10}{unit}" if whole else f"{tenths / 10:.1f}{unit}"
    return str(int(number))


def tokens(number: float) -> str:
    """A number of tokens: `4.9M tok`."""
    return f"{compact(number)} tok"


def money(usd: float | None) -> str:
    """US dollars: `$10.70`, `$1,204.00`; `<$0.01` for less than a cent, `$?` where unknown."""
    if usd is None:
        return f"${UNKNOWN}"
    if 0 < usd < _HUNDREDTH:
        return "<$0.01"
    return f"${usd:,.2f}"


def rate(per_second: float | None) -> str:
    """Events per second: `19.6/s`, `0.04/s`, `1,812/s`."""
    if per_second is None:
        return f"{UNKNOWN}/s"
    if 0 < per_second < _HUNDREDTH:
        return "<0.01/s"
    decimals = 2 if 0 < per_second < 1 else 1 if per_second < _DECIMAL_BELOW else 0
    return f"{per_second:,.{decimals}f}/s"


def percent(part: float, whole: float) -> str:
    """`part` of `whole`: `26%`, `6.2%`; 0% and 100% only where they are exact; `?` of nothing."""
    if whole <= 0:
        return UNKNOWN
    share = 100 * part / whole
    if part <= 0:
        return "0%"
    if part >= whole:
        return f"{share:.0f}%"
    if share < _TENTH:
        return "<0.1%"
    if share < _PERCENT_DECIMAL_BELOW:
        return f"{share:.1f}%"
    return f"{min(99, round(share))}%"


def duration(seconds: float | None) -> str:
    """A span in its two largest units: `45s`, `9m 10s`, `1h 12m`, `2d 04h`; `?` where unknown."""
    if seconds is None:
        return UNKNOWN
    whole = max(0, int(seconds))
    for unit, size, lower, lower_size in (
        ("d", 86_400, "h", 3600),
        ("h", 3600, "m", 60),
        ("m", 60, "s", 1),
    ):
        if whole >= size:
            return f"{whole // size}{unit} {whole % size // lower_size:02d}{lower}"
    return f"{whole}s"


def coarse(seconds: float | None) -> str:
    """A span in its largest unit, for ages and log lines: `45s`, `9m`, `1h`, `2d`."""
    return duration(seconds).split(" ", maxsplit=1)[0]


def ago(seconds: float | None) -> str:
    """An age: `just now`, `45s ago`, `4m ago`."""
    if seconds is None:
        return UNKNOWN
    return "just now" if seconds < 1 else f"{coarse(seconds)} ago"


def closed(text: str) -> str:
    """A text that ends a sentence: with a full stop, unless it has an end of its own."""
    return text if not text or text[-1] in ".!?…" else f"{text}."


def plural(number: int, noun: str, many: str = "") -> str:
    """`1 prompt`, `15,000 prompts`."""
    return f"{thousands(number)} {noun if number == 1 else many or noun + 's'}"


@lru_cache(maxsize=4096)
def char_width(char: str) -> int:
    """Terminal cells of one character that passed `safe_text`: 0, 1 or 2."""
    if unicodedata.category(char) in _MARKS:
        return 0
    return 2 if unicodedata.east_asian_width(char) in {"W", "F"} else 1


def width(text: str) -> int:
    """Terminal cells of a text that passed `safe_text`."""
    return len(text) if text.isascii() else sum(map(char_width, text))


def clip(text: str, cells: int) -> str:
    """Safe text cut to `cells`, with `…` as its last cell where something is missing."""
    if width(text) <= cells:
        return text
    if cells <= 0:
        return ""
    kept, used = [], 0
    for char in text:
        used += char_width(char)
        if used > cells - 1:
            break
        kept.append(char)
    return "".join(kept) + "…"


def pad(text: str, cells: int, *, right: bool = False) -> str:
    """Safe text cut or filled to exactly `cells`; `right` aligns it to the right edge."""
    text = clip(text, cells)
    fill = " " * (cells - width(text))
    return fill + text if right else text + fill


def safe_text(text: str, cells: int | None = None) -> str:
    r"""Text from outside, made harmless for a terminal and of known width.

    Control characters, escape sequences, line breaks, bidi and zero-width characters, lone
    surrogates and what Unicode has not assigned become visible escapes (`\n`, `\e`, `\u202e`);
    invisible variation selectors and every combining mark after the first are dropped. The result
    is one line; `cells` cuts it.
    """
    start = text[:_MAX_SCANNED]
    plain = start.isascii() and start.isprintable()
    result = (start if plain else _made_harmless(start)) + ("…" if len(text) > _MAX_SCANNED else "")
    return result if cells is None else clip(result, cells)


def _made_harmless(text: str) -> str:
    out: list[str] = []
    for char in unicodedata.normalize("NFC", text):
        out.append(char if char.isascii() and char.isprintable() else _harmless(char, out))
    return "".join(out)


def _harmless(char: str, before: list[str]) -> str:
    category = unicodedata.category(char)
    if category in _MARKS:
        return _combining(char, before)
    if char in _ESCAPES:
        return _ESCAPES[char]
    if category == "Zs":
        return " "
    if category[0] in "CZ" or _disputed(char):
        return _escaped(char)
    return char


def _escaped(char: str) -> str:
    digits = f"{ord(char):x}"
    mark, size = next(form for form in _ESCAPE_FORMS if len(digits) <= form[1])
    return f"\\{mark}{digits:0>{size}}"


def _combining(char: str, before: list[str]) -> str:
    if any(first <= ord(char) <= last for first, last in _INVISIBLE_MARKS):
        return ""
    if not before or not before[-1] or unicodedata.category(before[-1][-1]) in _MARKS | {"Zs"}:
        return ""
    return char


def _disputed(char: str) -> bool:
    code = ord(char)
    return any(first <= code <= last for first, last in _DISPUTED)
