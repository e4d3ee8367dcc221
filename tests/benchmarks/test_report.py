from __future__ import annotations

import base64
import io
import json
import re
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image

from tetrathlon.benchmarks import report
from tetrathlon.benchmarks.cells import Cell, Ledger
from tetrathlon.benchmarks.excerpt import escape, excerpt, line, visible
from tetrathlon.benchmarks.report import write_markdown, write_report, write_view
from tetrathlon.benchmarks.report_tables import LOOKS
from tetrathlon.benchmarks.results import COST_KEYS, aggregate, normalise, rate
from tetrathlon.benchmarks.suites import Entry
from tetrathlon.envs.episode import Episode, Step, save_episodes

HOSTILE = (
    "<script>document.title = 'owned'</script>",
    "</pre></article></main></body></html><img src=x onerror=\"document.title='owned'\">",
    '"><svg onload=alert(1)><style>*{display:none}</style>',
    "a" * 3_000_000,
    "wide " + "w" * 1400,
    "line\n" * 50_000,
    "\x00\x01\x1b[31mred\x7f\x85 \u202egnp.exe\u202c \u2028 \ufeff",
    "lone \ud800 and \udfff surrogates",
    "Z" + "\u0351\u036b\u0343\u036a" * 100 + "algo",
    "| a | b |\n|---|---|\n```\n# heading [link](javascript:alert(1))",
    "${title} $body %s {0} &lt; &amp;",
    "",
)
NAMES = ("<b>bold</b> & $x^2$ _under_ | pipe", "sums", "a name that is far too long for any table to show in full " * 3)
POLICIES = ("random", "expert", "evil:</script><script>alert(1)</script>")
SPREAD = {"mean": 0.5, "low": 0.2, "high": 0.8}
RESULT: dict[str, Any] = {
    "env": "<b>env</b>", "kwargs": {"a": "<"}, "domain": "other", "split": "test", "policy": "p</td>", "seed": 0,
    "greedy": True, "episodes": 2, "samples": 1, "distinct": 2, "success": {**SPREAD, "n": 2, "interval": "wilson"},
    "reward": SPREAD, "reward_terms": {}, "costs": {}, "scores": {}, "pass_at": {"1": 0.5},
    "pass_all": {"1": 0.5}, "majority_at": None,
    "steps": 1.0, "tokens": None, "lengths": {"unit": "steps", "success": 1.0, "failure": 1.0},
    "stop_reasons": {"<answered>": 1},
    "grader_errors": 0, "grader_messages": [], "crashes": {"count": 0, "messages": []}, "seconds": 1.0,
    "cpu_seconds": 1.0,
}  # fmt: skip


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run whose every string is hostile."""
    ledger = Ledger(tmp_path_factory.mktemp("run"))
    rows = []
    for name in NAMES:
        entry = Entry(name=name, env="other/<i>Env</i>-v0", kwargs={"text": "</td><script>", "long": "k" * 500})
        for policy in POLICIES:
            episodes = [episode(text, i < 4 and policy != "random") for i, text in enumerate(HOSTILE)]
            cell = Cell(entry, policy, 0)
            ledger.folder.joinpath("cells").mkdir(exist_ok=True)
            save_episodes(ledger.unfinished(cell), episodes)
            ledger.keep(cell, {})
            rows.append(a_row(name, policy, cell.slug, 0 if policy == "random" else 12 if policy == "expert" else 4))
    normalise(rows)
    missing = {"name": "smollm2", "source": None, "available": False, "reason": "pip install <b>it</b>"}
    there = [{"name": p, "source": "<u>", "available": True, "reason": None} for p in POLICIES]
    ledger.write(
        "results.json",
        {
            "suite": "<s>evil</s>",
            "version": 1,
            "entries": rows,
            "unavailable": [{"name": "it's & <b>away</b>", "reason": "no #package"}],
            "policies": [*there, missing],
            "aggregate": aggregate(rows),
            "repeat": {
                "command": "tetrathlon bench --policies '</pre><script>alert(1)</script>'",
                "seed": 0,
                "versions": {"python": "3.11", "torch": None},
                "platform": "x",
                "cpu": {"model": "<b>cpu</b>", "count": 2},
                "commit": None,
                "started": "2026-01-01T00:00:00+00:00",
                "finished": "2026-01-01T00:01:00+00:00",
                "parts": [{}],
            },
        },
    )
    write_report(ledger.folder)
    write_markdown(ledger.folder)
    return ledger.folder


@pytest.fixture(scope="module")
def viewed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Episodes of every domain, recorded and evaluated."""
    folder = tmp_path_factory.mktemp("view")
    rng = np.random.default_rng(0)
    picture = rng.integers(0, 255, (64, 64, 3), np.uint8)
    grey = rng.integers(0, 255, (700, 900, 1), np.uint8)
    robot = Episode(
        [
            Step(
                {"image": picture, "wrist_image": grey, "state": rng.normal(size=9), "instruction": "push <it>"},
                rng.normal(size=(4,)).astype(np.float32),
                reward=float("nan") if i == 2 else 0.25,
                info={"contacts": np.int64(3), "force": np.float32("inf"), "is_success": False, "reward_terms": {}},
                truncated=i == 59,
            )
            for i in range(60)
        ],
        {"image": picture, "state": np.zeros(2000)},
        env="robot",
    )
    call = '<tool_call>{"name": "run", "arguments": {"code": "</pre>"}}</tool_call>'
    tools = Episode(
        [
            Step("What is in <b>a.txt</b>?", call, info={"reward_terms": {"correct": 0.0}}),
            Step({"role": "tool", "content": ["x", b"\xff", (1, float("nan"))]}, "nothing", 1.0, True, label="<label>"),
        ],
        "",
        env="tools",
        seed=3,
        info={"system": "be <i>kind</i>", "task_id": "1"},
    )
    tools.steps[-1].info = {"is_success": True, "stop_reason": "answered", "reward_terms": {"correct": 1.0}}
    broken = Episode([Step("q", "a", 0.0, True, info={"grader_error": "<b>died</b>"})], "", env="text")
    save_episodes(folder, [robot, tools, broken, Episode(), *(episode(text, False) for text in HOSTILE)])
    (folder / "result.json").write_text(json.dumps(RESULT))
    write_view(folder)
    return folder


def episode(text: str, success: bool) -> Episode:
    info = {"is_success": success, "stop_reason": text[:100] or "answered", "reward_terms": {text[:20]: float(success)}}
    return Episode(
        [Step(text, text, float(success), True, info={**info, "note": text[:5000]})],
        "",
        env="other",
        seed=1,
        info={"system": text[:2000], "examples": [{"role": "user", "content": text[:2000]}] * 2},
    )


def a_row(name: str, policy: str, slug: str, successes: int) -> dict[str, Any]:
    stops = {text[:40] or "answered": 1 for text in HOSTILE[:6]}
    return {
        "name": name, "env": "other/<i>Env</i>-v0", "kwargs": {"text": "</td><script>"}, "domain": "other",
        "policy": policy, "success": rate(successes, 12, 12), "reward": 0.1, "reward_terms": {}, "tokens": 7.5,
        "costs": {"<b>hit</b>": dict.fromkeys(COST_KEYS, 0.25), "total": dict.fromkeys(COST_KEYS, 0.25)},
        "samples": 4, "pass_at": {"1": 0.25, "4": 0.6},
        "dependence": {"instances": 12, **dict.fromkeys(LOOKS, 0.375)},
        "strata": [{"successes": successes, "episodes": 12, "distinct": 12}], "steps": 1.0, "episodes": 12,
        "lengths": {"unit": "tokens", "success": 3.0, "failure": 9.0 if successes < 12 else None},
        "stop_reasons": stops, "grader_errors": 1, "crashes": 2, "seconds": 60.0, "cpu_seconds": 1.0, "cells": [slug],
    }  # fmt: skip


def test_what_answers_to_pictures_depend_on_is_told(folder: Path) -> None:
    html = (folder / "report.html").read_text("utf-8")
    section = html[html.index('id="looks"') :]
    section = section[: section.index("</table>")]
    assert section.count("<tr>") == 1 + 3 * len(NAMES)
    assert section.count('<td class="n">38</td>') == 9 * 3 * len(NAMES)


@pytest.mark.parametrize("page", ["report", "view"])
def test_nothing_that_a_model_wrote_becomes_markup(page: str, folder: Path, viewed: Path) -> None:
    path = folder / "report.html" if page == "report" else viewed / "view.html"
    html = path.read_bytes().decode("utf-8")  # no lone surrogate got through
    assert "<script" not in html.lower()
    assert not re.search(r"<[^>]*\son\w+\s*=", html)
    assert not re.search(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069\ufeff]", html)
    assert html.count("<html") == html.count("</html>") == html.count("<main>") == html.count("</main>") == 1
    assert "&lt;script&gt;" in html
    assert "characters left out" in html
    assert not re.search(r'(src|href)="(?!data:|#)', html)
    assert "url(http" not in html and "@import" not in html
    assert len(html) < 15_000_000


def test_the_markdown_holds_its_shape(folder: Path) -> None:
    text = (folder / "report.md").read_bytes().decode("utf-8")
    prose = "\n".join(row for row in text.splitlines() if not row.startswith("    "))  # indented is code
    assert "<script" not in prose and "<b>" not in prose
    rows = [row for row in text.splitlines() if row.startswith("|")]
    assert len(rows) == 2 + len(NAMES) + 2
    assert {len(re.findall(r"(?<!\\)\|", row)) for row in rows} == {5}
    assert "smollm2 was unavailable" in text.replace("\\", "")
    assert r"it's &amp; &lt;b&gt;away&lt;/b&gt; was unavailable: no \#package." in text  # each escaped once


@pytest.mark.parametrize(
    ("text", "fault"),
    [
        ("{", "is not JSON"),
        ("{}", "is not a result: no 'env'"),
        ("[1]", "is not a result: it is no object"),
        (json.dumps({**RESULT, "success": {"mean": 1}}), "is not a result: no 'success.low'"),
        (json.dumps({**RESULT, "samples": "2"}), "is not a result: 'samples' cannot be '2'"),
    ],
)
def test_what_is_no_result_is_named(text: str, fault: str, tmp_path: Path) -> None:
    save_episodes(tmp_path, [])
    (tmp_path / "result.json").write_text(text)
    with pytest.raises(ValueError, match=re.escape(f"{tmp_path / 'result.json'} {fault}")):
        write_view(tmp_path)


@pytest.mark.parametrize(
    ("damage", "fault"),
    [
        (lambda results: {}, "no 'suite'"),
        (lambda results: {**results, "entries": [1]}, "entries.0 is no object"),
        (lambda results: {**results, "entries": {}}, "'entries' is no list"),
        (lambda results: {**results, "aggregate": {"random": {}}}, "no 'aggregate.random.success'"),
    ],
)
def test_what_is_no_suite_is_named(damage: Any, fault: str, folder: Path, tmp_path: Path) -> None:
    results = json.loads((folder / "results.json").read_text())
    (tmp_path / "results.json").write_text(json.dumps(damage(results)))
    with pytest.raises(ValueError, match=re.escape(f"results.json is not the results of a suite: {fault}")):
        write_report(tmp_path)


@pytest.mark.parametrize("dark", [False, True], ids=["light", "dark"])
@pytest.mark.parametrize("width", [390, 1280])
@pytest.mark.parametrize("page", ["report", "view"])
def test_a_page_fits_its_window(page: str, width: int, dark: bool, folder: Path, viewed: Path, browser: Any) -> None:
    path = folder / "report.html" if page == "report" else viewed / "view.html"
    browser.console()
    browser.open(path, width, dark=dark)
    assert browser.js("window.innerWidth") == width
    for shown in ("as it opens", "with everything unfolded"):
        assert browser.js("document.documentElement.scrollWidth") <= width, shown
        reach = "[...document.querySelectorAll('main > *, .card, .episode, figure svg, pre')]"
        assert browser.js(f"Math.max(...{reach}.map(e => e.getBoundingClientRect().right))") <= width, shown
        browser.js("document.querySelectorAll('details').forEach(e => e.open = true)")
    assert "owned" not in browser.js("document.title")
    assert browser.js("document.querySelectorAll('script, main style, main iframe').length") == 0
    assert browser.js("performance.getEntriesByType('resource').filter(e => !e.name.startsWith('data:')).length") == 0
    pictures = browser.js("[...document.images].map(e => e.naturalWidth)")
    assert all(pictures) and (page == "report" or len(pictures) > 40)
    if page == "report":
        boxes = browser.js("[...document.querySelectorAll('figure svg')].map(e => e.getBoundingClientRect().height)")
        assert len(boxes) == 4 and min(boxes) > 80
        assert browser.js("[...document.querySelectorAll('[id]')].length == new Set([...document.querySelectorAll("
                          "'[id]')].map(e => e.id)).size")  # fmt: skip
    assert browser.console() == []


def test_a_view_shows_every_turn_and_what_was_paid(viewed: Path) -> None:
    html = (viewed / "view.html").read_text("utf-8")
    for shown in ("push &lt;it&gt;", "&lt;tool_call&gt;", "&lt;label&gt;", "be &lt;i&gt;kind", "correct 1", "answered",
                  "not graded: &lt;b&gt;died", "unfinished", "turns left out", "contacts", "wrist_image"):  # fmt: skip
        assert shown in html, shown


def test_a_view_needs_episodes(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError, match=r"episodes\.jsonl"):
        write_view(tmp_path)
    with pytest.raises(FileNotFoundError, match=r"results\.json"):
        write_report(tmp_path)
    save_episodes(tmp_path, [])
    assert "0 episodes" in write_view(tmp_path).read_text("utf-8")


def test_a_report_is_the_same_each_time(folder: Path) -> None:
    before = (folder / "report.html").read_bytes()
    write_report(folder)
    assert (folder / "report.html").read_bytes() == before


def test_text_is_made_visible_and_short() -> None:
    assert visible("a\x00\x1b\x7f\x85\u202e\ud800") == "a␀␛\\x7f\\x85\\u202e\\ud800"
    assert visible("tab\tand\r\nnewline") == "tab\tand\nnewline"
    assert visible("é e\u0301 한국어 👩‍👧") == "é e\u0301 한국어 👩‍👧"
    assert escape("<a href='\"'>") == "&lt;a href=&#x27;&quot;&#x27;&gt;"
    short = excerpt("x" * 10_000, 100)
    assert len(short) < 200 and "9,900 of 10,000 characters left out" in short
    assert excerpt("as it is") == "as it is"
    assert len(excerpt("a\n" * 10_000, 1500, 10).splitlines()) == 11
    assert line("a\n b\t c" + "d" * 100, 10) == "a b cdddd…"


def test_nothing_heavy_comes_with_the_front_of_the_package() -> None:
    import subprocess

    script = (
        "import sys, tetrathlon.benchmarks; print([m for m in ('matplotlib', 'torch', 'scipy') if m in sys.modules])"
    )
    asked = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, timeout=60, check=True)
    assert asked.stdout.strip() == "[]"


def test_an_episode_of_pictures_is_a_film(tmp_path: Path) -> None:
    def seen(t: int) -> dict[str, Any]:
        picture = np.full((32, 32, 3), 230, np.uint8)
        picture[4:12, t % 24 : t % 24 + 8] = 40
        return {"image": picture, "instruction": "push"}

    lengths = (300, 20, 3)
    episodes = [Episode([Step(seen(t), 0) for t in range(n)], seen(n)) for n in lengths]
    blind = Episode([Step({"state": t}, 0) for t in range(20)], {"state": 20})
    save_episodes(tmp_path, [*episodes, blind])
    page = write_view(tmp_path).read_text("utf-8")
    films = re.findall(r'data:image/gif;base64,([^"]+)" width="(\d+)"', page)
    assert [width for _, width in films] == ["224", "224"]  # of three steps none is made, nor of what has no picture
    shown = []
    for data, _ in films:
        with Image.open(io.BytesIO(base64.b64decode(data))) as film:
            shown.append(getattr(film, "n_frames", 1))
    assert shown == [101, 21]  # every third of 301


def test_each_reason_why_episodes_ended_is_shown(monkeypatch: pytest.MonkeyPatch) -> None:
    reasons = ["answered"] * 9 + ["max_turns", "answered", "length"]
    episodes = [
        Episode([Step("q", str(i), terminated=True, info={"is_success": i % 2 == 0 and i < 9, "stop_reason": reason})])
        for i, reason in enumerate(reasons)
    ]
    monkeypatch.setattr(report, "load_episodes", lambda folder: episodes)
    shown = report._chosen(Path(), {"cells": ["one"]})
    wrong = [episode.stop_reason for episode in shown if not episode.is_success]
    assert {"answered", "max_turns", "length"} == set(wrong)
    numbers = [int(episode.steps[0].action) for episode in shown]
    assert numbers[0] == 0 and sorted(numbers[-len(wrong) :]) == numbers[-len(wrong) :]
