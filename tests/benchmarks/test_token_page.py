"""Tokens in the colour of how their probability changed."""

from __future__ import annotations

import json
import math
import re
from pathlib import Path
from typing import Any

import pytest

from tests.benchmarks.test_training_page import tokens, viewed
from tetrathlon.benchmarks.files import load_tokens
from tetrathlon.benchmarks.token_page import tokens_html


def spans(html: str) -> list[tuple[str, str, str]]:
    """Class, title and text of the tokens of the episodes."""
    return re.findall(r'<span class="t ?(\w*)" title="([^"]*)">([^<]*)</span>', html)


@pytest.mark.parametrize(
    ("factor", "kind"),
    [(1.0, ""), (1.05, ""), (1.2, "u1"), (2.0, "u2"), (5.0, "u3"), (20.0, "u4"), (1 / 1.2, "d1"), (1 / 2, "d2")],
)
def test_a_colour_is_a_factor(factor: float, kind: str) -> None:
    data = viewed({"tokens": tokens(logp=[math.log(0.04 * factor)], start_logp=[math.log(0.04)])})
    ((found, title, text),) = spans(tokens_html(data))
    assert (found, text) == (kind, "a")
    assert title.startswith("4 % (log -3.219) at the start") and f"{4 * factor:.3g} % (log " in title
    assert title.endswith("now; entropy 0.50 nats")


def test_every_token_is_shown_as_it_was_sampled() -> None:
    text = ["<b>", "", "🙂", "\n", " x"]
    many = {name: [value] * 5 for name, value in (("logp", None), ("start_logp", -1.0), ("entropy", None))}
    html = tokens_html(viewed({"given": "what <is>"}, {"tokens": {"text": text, "id": [1, 2, 3, 4, 5], **many}}))
    assert '<span class="given">what &lt;is&gt;</span>' in html
    assert [shown for _, _, shown in spans(html)] == ["&lt;b&gt;", "◌", "🙂", "↵\n", " x"]
    assert {kind for kind, _, _ in spans(html)} == {""} and "unknown now" in html


def test_tables_hold_means_over_all_episodes() -> None:
    rows = [("a", 1, -1.0, -2.0, 0.5), ("a", 1, -1.0, -3.0, 1.5), ("b", 2, -2.0, -1.0, 3.0), ("", 3, -1.0, -1.0, 0.0)]
    names = ("text", "id", "logp", "start_logp", "entropy")
    data = viewed()
    for row in rows:
        part = {"tokens": {name: [value] for name, value in zip(names, row, strict=True)}}
        data["episodes"] += viewed({"given": "x"}, part)["episodes"]
    html = tokens_html(data)
    found = [re.sub("<[^>]*>", " ", part).split() for part in re.findall(r"<h3>.*?</table>", html, re.S)]
    assert [" ".join(words) for words in found] == [
        "Highest entropy token nats sampled &quot;b&quot; 3.00 1 &quot;a&quot; 1.00 2",
        f"Likelier than at the start token factor sampled &quot;a&quot; × {math.exp(1.5):.3g} 2",
        f"Less likely than at the start token factor sampled &quot;b&quot; × {math.exp(-1):.3g} 1",
    ]


def test_much_is_cut_and_said() -> None:
    long = {name: value * 4000 for name, value in tokens().items()}
    html = tokens_html(viewed({"tokens": long}, {"tokens": long}))
    assert len(spans(html)) == 1500 and "2,500 tokens left out" in html and "4,000 tokens left out" in html
    data = {"temperature": 1.0, "episodes": viewed({"tokens": tokens()})["episodes"] * 40}
    html = tokens_html(data)
    assert html.count("<article") == 12 and "The first 12 of 40 episodes." in html
    assert '<td class="n">40</td>' in html  # the tables are of all
    assert "No token was sampled" in tokens_html({"temperature": 1.0, "episodes": []})


@pytest.mark.parametrize(
    ("data", "fault"),
    [
        ([], "it is no object"),
        (viewed({"given": 3}), "tokens is no object"),
        (viewed({"tokens": tokens(text=[3])}), "'tokens.text.0' cannot be 3"),
        (viewed({"tokens": tokens(id=[1, 2])}), "'tokens' holds columns of different lengths"),
        ({"temperature": 1.0, "episodes": [{"success": 1}]}, "'episodes.0.success' cannot be 1"),
    ],
)
def test_what_is_no_token_view_is_named(data: Any, fault: str, tmp_path: Path) -> None:
    path = tmp_path / "tokens.json"
    path.write_text(json.dumps(data))
    with pytest.raises(ValueError, match=re.escape(f"{path} is not a token view: {fault}")):
        load_tokens(path)
    path.write_text(json.dumps(viewed({"given": "x"}, {"tokens": tokens(logp=[None])})))
    assert load_tokens(path)["temperature"] == 1.0
