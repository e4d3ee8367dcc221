"""Which language a text is in, and a reward term for replies that keep to one.

Languages are told apart by script (Unicode) and, where several share a script, by the package py3langid among these.
"""

from __future__ import annotations

import math
import re
import threading
import unicodedata
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cache
from typing import Any

import gymnasium as gym

from tetrathlon.envs.episode import Episode
from tetrathlon.envs.grading.thinking import visible
from tetrathlon.envs.rubric import Term

_LEAST_LETTERS = 20
_LEAST_SYMBOLS = 8  # of a script whose every character is a syllable or a word
_CHUNK_LETTERS = 80
_MOST_CHUNKS = 64
_LEAST_SHARE = 0.8
_LEAST_CERTAINTY = 0.6
_LEAST_KANA = 0.1
_MOST_MARKS = 8

_CODE = re.compile(r"```.*?(?:```|\Z)|~~~.*?(?:~~~|\Z)|`[^`\n]{0,1000}+`", re.DOTALL)
_ADDRESS = re.compile(r"\b(?:https?://|www\.)\S++|(?<![\w.+-])[\w.+-]++@[\w.-]++")
_JSON_KEY = re.compile(r'"[^"\n]{0,200}+"[ \t]{0,8}+:')
_BREAK = re.compile(r"\n+|(?<=[.!?।])\s+|(?<=[。！？])")

_RANGES: Mapping[str, str] = {
    "Latin": "A-Za-zªºÀ-ÖØ-öø-ɏ\u1e00-\u1eff",
    "Greek": "\u0370-\u03ff\u1f00-\u1fff",
    "Cyrillic": "\u0400-\u052f",
    "Hebrew": "\u0590-\u05ff",
    "Arabic": "\u0600-\u06ff\u0750-\u077f\ufb50-\ufdff\ufe70-\ufefc",
    "Devanagari": "\u0900-\u097f",
    "Bengali": "\u0980-\u09ff",
    "Gurmukhi": "\u0a00-\u0a7f",
    "Gujarati": "\u0a80-\u0aff",
    "Tamil": "\u0b80-\u0bff",
    "Telugu": "\u0c00-\u0c7f",
    "Kannada": "\u0c80-\u0cff",
    "Malayalam": "\u0d00-\u0d7f",
    "Thai": "\u0e00-\u0e7f",
    "Hangul": "\u1100-\u11ff\u3130-\u318f\uac00-\ud7a3",
    "Kana": "\u3041-\u3096\u30a1-\u30fa\u30fc",
    "Han": "\u3005\u3400-\u4dbf\u4e00-\u9fff\U00020000-\U0002ffff",
}
_LATIN, _ALIKE = _RANGES["Latin"], _RANGES["Greek"] + _RANGES["Cyrillic"]
_MIXED = re.compile(f"[{_LATIN}][{_ALIKE}]|[{_ALIKE}][{_LATIN}]")
_MOST_MIXED = 2  # in a piece; more are letters that only look like others
_SCRIPTS = {script: re.compile(f"[{ranges}]") for script, ranges in _RANGES.items()}


@dataclass(frozen=True, slots=True)
class Language:
    """A language that can be told from the others here."""

    name: str
    """English name."""
    scripts: tuple[str, ...] = ("Latin",)
    """Scripts that it is written in."""


LANGUAGES: Mapping[str, Language] = {
    "ar": Language("Arabic", ("Arabic",)),
    "bg": Language("Bulgarian", ("Cyrillic",)),
    "bn": Language("Bengali", ("Bengali",)),
    "cs": Language("Czech"),
    "da": Language("Danish"),
    "de": Language("German"),
    "el": Language("Greek", ("Greek",)),
    "en": Language("English"),
    "es": Language("Spanish"),
    "fa": Language("Persian", ("Arabic",)),
    "fi": Language("Finnish"),
    "fr": Language("French"),
    "gu": Language("Gujarati", ("Gujarati",)),
    "he": Language("Hebrew", ("Hebrew",)),
    "hi": Language("Hindi", ("Devanagari",)),
    "hu": Language("Hungarian"),
    "it": Language("Italian"),
    "ja": Language("Japanese", ("Kana", "Han")),
    "kn": Language("Kannada", ("Kannada",)),
    "ko": Language("Korean", ("Hangul",)),
    "ml": Language("Malayalam", ("Malayalam",)),
    "mr": Language("Marathi", ("Devanagari",)),
    "ne": Language("Nepali", ("Devanagari",)),
    "nl": Language("Dutch"),
    "pa": Language("Punjabi", ("Gurmukhi",)),
    "pl": Language("Polish"),
    "pt": Language("Portuguese"),
    "ro": Language("Romanian"),
    "ru": Language("Russian", ("Cyrillic",)),
    "sv": Language("Swedish"),
    "sw": Language("Swahili"),
    "ta": Language("Tamil", ("Tamil",)),
    "te": Language("Telugu", ("Telugu",)),
    "th": Language("Thai", ("Thai",)),
    "tr": Language("Turkish"),
    "uk": Language("Ukrainian", ("Cyrillic",)),
    "ur": Language("Urdu", ("Arabic",)),
    "vi": Language("Vietnamese"),
    "zh": Language("Chinese", ("Han",)),
}
"""The languages by ISO 639-1 code."""

_LOCK = threading.Lock()


@cache
def _loaded_model() -> Any:
    try:
        from py3langid.langid import MODEL_FILE, LanguageIdentifier
    except ImportError as error:
        raise gym.error.DependencyNotInstalled(
            'telling languages apart needs the package py3langid: pip install "tetrathlon[llm]"'
        ) from error
    return LanguageIdentifier.from_model_file(MODEL_FILE)


def model() -> Any:
    """Return the model of py3langid, loaded once (0.8 s, 80 MB); it is only read, so threads may share it.

    Raises:
        gymnasium.error.DependencyNotInstalled: The package is missing.
    """
    with _LOCK:
        return _loaded_model()


def prose(text: str) -> str:
    """Return ``text`` without what is in no human language: code, addresses, keys of JSON."""
    return _JSON_KEY.sub(" ", _ADDRESS.sub(" ", _CODE.sub(" ", text)))


def is_in(text: str, code: str) -> bool | None:
    """Tell whether the prose of ``text`` is in the language ``code``.

    The text is judged in pieces of about 80 letters, at most 64 of them, and is in the language where four fifths of
    the letters that can be judged are.

    Args:
        text: Any text; the time is linear in its length.
        code: A key of :data:`LANGUAGES`.

    Returns:
        None where there are fewer than 20 letters (8 of a Chinese, Japanese or Korean text), or none can be judged.
    """
    language = LANGUAGES[code]
    pieces = _pieces(prose(text))
    letters, decided, right = 0, 0, 0
    for piece, counts in pieces:
        size = sum(counts.values())
        letters += size * _weight(counts) // 100
        found = _language_of(piece, counts, language)
        if found is not None:
            decided += size
            right += size * (found == code)
    if letters < _LEAST_LETTERS or not decided:
        return None
    return right >= _LEAST_SHARE * decided


def language_term(
    language: Callable[[Any], str], *, weight: float = 0.0, gate: bool = False, name: str = "language"
) -> Term:
    """Return a reward term that holds a reply's prose in one language; what cannot be judged passes.

    Args:
        language: Returns the code of a task's language.
        weight: What keeping to the language pays; the default only records it.
        gate: Whether another language takes all pay.
        name: See :class:`Term`.
    """

    def grade(task: Any, episode: Episode) -> float:
        reply = visible(str(episode.steps[-1].action))
        return float(reply is None or is_in(reply, language(task)) is not False)

    return Term(name, grade, weight, gate)


def _pieces(text: str) -> list[tuple[str, dict[str, int]]]:
    """Cut ``text`` at ends of sentences into pieces, each with its number of letters by script."""
    least = max(_CHUNK_LETTERS, len(text) // _MOST_CHUNKS)
    pieces: list[list[str]] = [[]]
    size = 0
    for part in _BREAK.split(text):
        for start in range(0, len(part), least) or (0,):
            pieces[-1].append(part[start : start + least])
            size += len(pieces[-1][-1])
            if size >= least:
                pieces.append([])
                size = 0
    if len(pieces) > 1 and size < least // 2:  # too short to be judged by itself
        tail = pieces.pop()
        pieces[-1] += tail
    return [(piece, _count_letters(piece)) for piece in (" ".join(parts) for parts in pieces)]


def _count_letters(text: str) -> dict[str, int]:
    counts = {script: len(pattern.findall(text)) for script, pattern in _SCRIPTS.items()}
    return {script: count for script, count in counts.items() if count}


def _weight(counts: Mapping[str, int]) -> int:
    """Return what a letter counts, in percent: those of dense scripts say more."""
    dense = sum(counts.get(script, 0) for script in ("Han", "Kana", "Hangul"))
    return 100 * _LEAST_LETTERS // _LEAST_SYMBOLS if 2 * dense > sum(counts.values()) else 100


def _language_of(text: str, counts: Mapping[str, int], wanted: Language) -> str | None:
    """Return the code of the language of ``text``, "" for one that is not ``wanted``, None where it cannot be said."""
    total = sum(counts.values())
    if not total:
        return None
    if sum(counts.get(script, 0) for script in wanted.scripts) < _LEAST_SHARE * total:
        return ""
    if len(_MIXED.findall(text)) > _MOST_MIXED:
        return ""
    if "Han" in wanted.scripts:
        return "ja" if counts.get("Kana", 0) >= _LEAST_KANA * total else "zh"
    rivals = [code for code, language in LANGUAGES.items() if language.scripts == wanted.scripts]
    return rivals[0] if len(rivals) == 1 else _ranked(text, rivals)


def _ranked(text: str, rivals: list[str]) -> str | None:
    encoded = _calm(text)
    scores = dict(model().rank(encoded))
    best = max(rivals, key=lambda code: scores[code])
    # The package's own calibration: a softmax at temperature sqrt(bytes), here over the rivals alone.
    heat = math.sqrt(len(encoded.encode("utf-8", "surrogatepass")) or 1)
    share = 1 / sum(math.exp((scores[code] - scores[best]) / heat) for code in rivals)
    return best if share >= _LEAST_CERTAINTY else None


def _calm(text: str) -> str:
    """Cut long runs of combining marks, which the package normalises in quadratic time."""
    if text.isascii():
        return text
    kept, run = [], 0
    for letter in text:
        run = run + 1 if unicodedata.combining(letter) else 0
        if run <= _MOST_MARKS:
            kept.append(letter)
    return "".join(kept)
