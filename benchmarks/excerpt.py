"""Text of unknown origin, made fit to be shown: what a model wrote may hold anything."""

from __future__ import annotations

import html
import re
import unicodedata

_TAIL = 200

_HIDDEN = re.compile(
    # C0 and C1 controls but tab and newline, marks that reorder text, lone surrogates, and the
    # noncharacters that XML forbids.
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ud800-\udfff\ufdd0-\ufdef\ufeff\ufff9-\uffff]"
)
_PILE = re.compile(r"[^\W\d_]?(?:[\u0300-\u036f\u0483-\u0489\u1ab0-\u1aff\u1dc0-\u1dff\u20d0-\u20ff\ufe20-\ufe2f]){5,}")


def visible(text: str) -> str:
    """Return ``text`` with every character that hides, reorders or cannot be encoded written as an escape."""
    text = text.replace("\r\n", "\n").replace("\r", "\n")
    text = _PILE.sub(lambda found: unicodedata.normalize("NFC", found[0][:4]) + "…", text)
    return _HIDDEN.sub(_escaped, text)


def _escaped(found: re.Match[str]) -> str:
    code = ord(found[0])
    if code < 0x20:
        return chr(0x2400 + code)  # Unicode has a picture of each
    return f"\\x{code:02x}" if code < 0x100 else f"\\u{code:04x}"


def excerpt(text: object, limit: int = 1500, lines: int = 60) -> str:
    """Return ``text``, made visible and shortened with a note of how much was left out.

    Args:
        text: What to show.
        limit: Most characters that are kept.
        lines: Most lines that are kept.
    """
    whole = str(text)
    # Cut first: a reply of megabytes is not worth escaping.
    kept, end = whole[:limit], ""
    if len(whole) > limit:
        tail = min(_TAIL, limit // 4)
        kept, end = whole[: limit - tail], whole[len(whole) - tail :] if tail else ""
    rows = visible(kept).split("\n")
    if len(rows) > lines:
        kept_rows = "\n".join(rows[:lines])
        return f"{kept_rows}\n[… {len(whole):,} characters in all, the rest is left out]"
    if len(whole) > limit:
        left = len(whole) - len(kept) - len(end)
        return f"{visible(kept)}\n[… {left:,} of {len(whole):,} characters left out …]\n{visible(end)}"
    return "\n".join(rows)


def line(text: object, limit: int = 60) -> str:
    """Return ``text`` on one line of at most ``limit`` characters."""
    whole = " ".join(visible(str(text)[: 4 * limit]).split())
    return whole if len(whole) <= limit else whole[: limit - 1] + "…"


def escape(text: object) -> str:
    """Return ``text`` made visible and safe in HTML, in elements and in quoted attributes."""
    return html.escape(visible(str(text)), quote=True)
