"""Which language a text is in, and a reward term for replies that keep to one.

Languages are told apart by script (Unicode) and, where several share a script, by the package py3langid among these.
"""

from __future__ import annotations

import math
import re
import threading
import zlib
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from typing import Any

import gymnasium as gym
import numpy as np

from tetrathlon.envs.episode import Episode
from tetrathlon.envs.grading.thinking import visible
from tetrathlon.envs.rubric import Term
from tetrathlon.envs.text.instructions.data_formats import parse_json
from tetrathlon.envs.text.instructions.units import normalized, shown

_LEAST_LETTERS = 20
_LEAST_SYMBOLS = 8  # of a script whose every character is a syllable or a word
_ALONE_LETTERS = 30  # a sentence of as many is judged by itself
_CHUNK_LENGTH = 100
_MOST_CHUNKS = 256
_LONGEST = 200_000
_LEAST_SHARE = 0.8
_LEAST_CERTAINTY = 0.6
_LEAST_KANA = 0.1

_CODE = re.compile(r"```.*?(?:```|\Z)|~~~.*?(?:~~~|\Z)|`[^`\n]{0,1000}+`", re.DOTALL)
_ADDRESS = re.compile(r"\b(?:https?://|www\.)\S++|(?<![\w.+-])[\w.+-]++@[\w.-]++")
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
_DENSE = re.compile(f"[{_RANGES['Han'] + _RANGES['Kana'] + _RANGES['Hangul']}]")
_KNOWN = re.compile(f"[{''.join(_RANGES.values())}]+")


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
    """Return ``text`` without code and addresses; of a JSON text its strings without the keys."""
    value, is_json = parse_json(text)
    if is_json:
        text = "\n".join(_strings(value))
    return _ADDRESS.sub(" ", _CODE.sub(" ", text))


def is_in(text: str, code: str, *, may_cut: float = 1.0) -> bool | None:
    """Tell whether the prose of ``text`` is in the language ``code``.

    Code between backticks or tildes, addresses and the keys of a JSON text are cut out first (:func:`prose`). The rest
    is judged sentence by sentence, short ones together, of a long text 256, and is in the language where four
    fifths of its letters stand in pieces that are. Letters of scripts that are in no list here are wrong ones.

    Args:
        text: Any text; the time is linear in its length.
        code: A key of :data:`LANGUAGES`.
        may_cut: The largest share of the letters that may be cut out; where it would be more, all of ``text`` is
            judged.

    Returns:
        None where there are fewer than 20 letters (8 of a Chinese, Japanese or Korean text), or none can be judged.

    Raises:
        ValueError: ``code`` is none of a language that can be told.
    """
    language = LANGUAGES[check_code(code)]
    text = shown(text)
    kept = prose(text)
    if may_cut < 1:
        letters, left = (sum(map(str.isalpha, part)) for part in (text, kept))
        kept = text if letters - left > may_cut * letters else kept
    letters, size_of_all, decided, right = 0, 0, 0, 0
    for piece in _pieces(normalized(kept)):
        counts = _count_letters(piece)
        size = sum(counts.values())
        letters += size * _weight(counts) // 100
        found = _language_of(piece, counts, language)
        size_of_all += size  # what cannot be decided is not in the language
        decided += size * (found is not None)
        right += size * (found == code)
    if letters < _LEAST_LETTERS or not decided:
        return None
    return right >= _LEAST_SHARE * size_of_all


def check_code(code: str) -> str:
    """Return ``code``.

    Raises:
        ValueError: It is none of a language that can be told.
    """
    if code not in LANGUAGES:
        raise ValueError(f"language must be one of {', '.join(LANGUAGES)}, got {code!r}")
    return code


def language_term(
    language: str | Callable[[Any], str], *, weight: float = 0.0, gate: bool = False, name: str = "language"
) -> Term:
    """Return a reward term that holds a reply's prose in one language; what is too short to be judged passes.

    A reply without anything to see is paid nothing: with a ``weight`` it scores 0. So does one of more than 200,000
    characters. Code and addresses are cut out before a reply is judged, see :func:`is_in`.

    Args:
        language: A code, a key of :data:`LANGUAGES`, or what returns the code of a task's language.
        weight: What keeping to the language pays; the default only records it.
        gate: Whether another language takes all pay.
        name: See :class:`Term`.

    Raises:
        ValueError: ``language`` is a code of none that can be told.
    """
    if isinstance(language, str):
        check_code(language)

    def grade(task: Any, episode: Episode) -> float:
        completion = str(episode.steps[-1].action)
        if len(completion) > _LONGEST:
            return 0.0
        reply = visible(completion)
        if reply is None or not shown(reply):
            return 0.0 if weight else 1.0
        return float(is_in(reply, language if isinstance(language, str) else language(task)) is not False)

    return Term(name, grade, weight, gate)


def _strings(value: Any) -> Iterator[str]:
    """Yield the strings of what :func:`parse_json` returned; it is not deep."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, list | dict):
        for part in value.values() if isinstance(value, dict) else value:
            yield from _strings(part)


def _pieces(text: str) -> list[str]:
    """Cut ``text`` at ends of sentences into pieces, and draw 256 of them where there are more."""
    pieces: list[str] = []
    parts: list[str] = []
    size = 0
    for sentence in _BREAK.split(text):
        step = -(-len(sentence) // -(-len(sentence) // _CHUNK_LENGTH)) if sentence else 1  # parts of one length
        for start in range(0, len(sentence), step):
            part = sentence[start : start + step]
            parts.append(part)
            size += sum(map(str.isalpha, part)) + len(_DENSE.findall(part))  # twice: they say more
            if size >= _ALONE_LETTERS:
                pieces.append(" ".join(parts))
                parts, size = [], 0
    if pieces and size < _ALONE_LETTERS // 2:  # too short to be judged by itself
        parts.insert(0, pieces.pop())
    pieces.append(" ".join(parts))
    if len(pieces) <= _MOST_CHUNKS:
        return pieces
    # Every tenth sentence in the right language must not do: which ones are judged hangs on the whole text.
    rng = np.random.default_rng(zlib.crc32(text.encode("utf-8", "surrogatepass")))
    return [pieces[index] for index in rng.choice(len(pieces), _MOST_CHUNKS, replace=False).tolist()]


def _count_letters(text: str) -> dict[str, int]:
    """Return the number of letters by script; those of none that is known here are under "other"."""
    counts = {script: len(pattern.findall(text)) for script, pattern in _SCRIPTS.items()}
    counts["other"] = sum(map(str.isalpha, _KNOWN.sub("", text)))
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
    scores = dict(model().rank(text))
    best = max(rivals, key=lambda code: scores[code])
    # The package's own calibration: a softmax at temperature sqrt(bytes), here over the rivals alone.
    heat = math.sqrt(len(text.encode("utf-8", "surrogatepass")) or 1)
    share = 1 / sum(math.exp((scores[code] - scores[best]) / heat) for code in rivals)
    return best if share >= _LEAST_CERTAINTY else None
