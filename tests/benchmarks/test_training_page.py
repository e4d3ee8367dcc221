"""The report of a training run, from its first update on."""

from __future__ import annotations

import io
import json
import re
from pathlib import Path
from typing import Any

import pytest
from rich.console import Console

from tests.benchmarks.test_history import write
from tests.benchmarks.test_report import HOSTILE, episode
from tetrathlon.benchmarks.history import History
from tetrathlon.benchmarks.training_page import write_training_report
from tetrathlon.benchmarks.training_table import show_training
from tetrathlon.envs.episode import save_episodes

BAD = "</main><script>document.title = 'owned'</script>"


def tokens(**of_token: Any) -> dict[str, Any]:
    """One token."""
    return {"text": ["a"], "id": [7], "logp": [-1.0], "start_logp": [-1.0], "entropy": [0.5]} | of_token


def viewed(*parts: dict[str, Any], success: bool | None = True) -> dict[str, Any]:
    return {
        "temperature": 1.0,
        "episodes": [{"success": success, "reward": 1.0, "seed": 1, "parts": list(parts)}],
    }


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run whose every string is hostile, with updates to come and a line half written."""
    folder = tmp_path_factory.mktemp("run")
    lines = [
        {
            "update": k, "success": k / 40, "episodes": 16.0, "entropy": None if k == 9 else 1.0, BAD: k,
            f"reward_terms/{BAD}": 1, f"{BAD}/{BAD}": 1e30 * k, "seconds_play": 60.0, "grad_norm": float("nan"),
            "test/success": k / 40, "test/low": 0.0, "test/high": 1.0,
        }
        for k in range(30)
    ]  # fmt: skip
    write(folder, lines, '{"update": 30, "succ', updates=100, policy=BAD, kwargs={BAD: [BAD, "x" * 5000]})
    save_episodes(folder, [episode(text, i < 6) for i, text in enumerate(HOSTILE)])
    parts = [{"given": text} for text in HOSTILE]
    said = {name: [value] * len(HOSTILE) for name, value in (("logp", -0.5), ("start_logp", -2.0), ("entropy", 1.0))}
    (folder / "tokens.json").write_text(
        json.dumps(viewed(*parts, {"tokens": {"text": HOSTILE, "id": list(range(len(HOSTILE))), **said}}))
    )
    write_training_report(folder)
    return folder


def test_nothing_that_was_told_becomes_markup(folder: Path) -> None:
    html = (folder / "report.html").read_bytes().decode("utf-8")
    assert "<script" not in html.lower()
    assert not re.search(r"<[^>]*\son\w+\s*=", html)
    assert not re.search(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069\ufeff]", html)
    assert html.count("<main>") == html.count("</main>") == html.count("</html>") == 1
    assert not re.search(r'(src|href)="(?!data:|#)', html)
    assert len(html) < 1_000_000


def test_a_run_under_way_says_so(folder: Path) -> None:
    html = (folder / "report.html").read_text("utf-8")
    for said in (
        "30 of 100 updates are done: the run is under way, or it was stopped.",
        "that cannot be read and are left out: 1.",
        "Not a number at the last update: grad_norm.",
        "480 episodes · 30.0 min",
        "12 that were kept, 6 of them right",
        "Figure 1. Success.",
        '<div class="big">72.5 %</div>',  # the last of test, whose interval stands below
        "0.0 % at the start; at the end [0.0 %, 100.0 %]",
        "over the first and the last 3 updates",
    ):
        assert said in html, said


@pytest.mark.parametrize("dark", [False, True], ids=["light", "dark"])
@pytest.mark.parametrize("width", [390, 1280])
def test_a_page_fits_its_window(width: int, dark: bool, folder: Path, browser: Any) -> None:
    browser.console()
    browser.open(folder / "report.html", width, dark=dark)
    assert browser.js("document.documentElement.scrollWidth") <= width
    reach = "[...document.querySelectorAll('main > *, .card, .episode, figure svg, pre')]"
    assert browser.js(f"Math.max(...{reach}.map(e => e.getBoundingClientRect().right))") <= width
    assert "owned" not in browser.js("document.title")
    assert browser.js("performance.getEntriesByType('resource').filter(e => !e.name.startsWith('data:')).length") == 0
    boxes = browser.js("[...document.querySelectorAll('figure svg')].map(e => e.getBoundingClientRect().height)")
    figures = (folder / "report.html").read_text("utf-8").count("<figure>")
    assert len(boxes) == figures >= 8 and min(boxes) > 80
    assert browser.js("[...document.querySelectorAll('[id]')].length == new Set([...document.querySelectorAll("
                      "'[id]')].map(e => e.id)).size")  # fmt: skip
    assert browser.js("[...document.querySelectorAll('nav a')].every(a => document.querySelector(a.hash))")
    # Read at its darkest colour, a token is still ink on a ground: a change is seen without its colour too.
    style = "getComputedStyle(document.querySelector('pre.tokens .u3'))"
    assert browser.js(f"{style}.borderBottomWidth") == "3px" and browser.js(f"{style}.borderBottomStyle") == "solid"
    assert browser.js(f"{style}.backgroundColor") != browser.js("getComputedStyle(document.body).backgroundColor")
    assert browser.console() == []


def test_a_run_of_one_update_and_one_of_none(tmp_path: Path) -> None:
    write(tmp_path, [{"update": 0, "success": 0.5, "episodes": 8.0}], updates=1)
    html = write_training_report(tmp_path).read_text("utf-8")
    assert "1 of 1 updates" in html and "under way" not in html and html.count("<figure>") == 2
    assert "There are none yet" in html and 'id="tokens"' not in html
    (tmp_path / "metrics.jsonl").unlink()
    html = write_training_report(tmp_path).read_text("utf-8")
    assert "No update is done yet." in html and "<figure>" not in html


def test_a_long_run_makes_a_page_that_opens(tmp_path: Path) -> None:
    write(tmp_path, [{"update": k, "success": k % 7 / 7, "episodes": 8.0} for k in range(10_000)])
    html = write_training_report(tmp_path).read_text("utf-8")
    assert "10,000 updates" in html and len(html) < 200_000


def test_a_report_is_the_same_each_time(tmp_path: Path) -> None:
    write(tmp_path, [{"update": k, "success": k / 9} for k in range(9)])
    before = write_training_report(tmp_path).read_bytes()
    assert write_training_report(tmp_path).read_bytes() == before


def test_what_is_damaged_is_named_and_the_rest_is_shown(tmp_path: Path) -> None:
    write(tmp_path, [{"update": 0, "entropy": 1.0}])
    (tmp_path / "episodes.jsonl").write_text("{\n")
    (tmp_path / "tokens.json").write_text('{"temperature": 1.0}')
    html = write_training_report(tmp_path).read_text("utf-8")
    assert "line 1 of" in html and "is not an episode" in html
    assert "tokens.json is not a token view: no &#x27;episodes&#x27;" in html and "Figure 1. Entropy." in html


def test_sample_episodes_come_from_different_starts(tmp_path: Path) -> None:
    write(tmp_path, [])
    episodes = [episode(f"said {number}", True) for number in range(10)]
    for number, each in enumerate(episodes):
        each.group = number // 3
    save_episodes(tmp_path, episodes)
    html = write_training_report(tmp_path).read_text("utf-8")
    assert re.findall(r'class="said">said (\d)<', html) == ["0", "3", "6", "9"]


def test_where_nobody_tells_success_nothing_is_wrong(tmp_path: Path) -> None:
    write(tmp_path, [{"update": 0, "episode_reward": 9.0}])
    played = episode("left", False)
    del played.steps[-1].info["is_success"]
    save_episodes(tmp_path, [played])
    html = write_training_report(tmp_path).read_text()
    assert ">over<" in html and ">wrong<" not in html and "the first 4 episodes of 1 that were kept." in html


def test_the_terminal_says_it_in_80_columns(folder: Path) -> None:
    console = Console(width=80, record=True, file=io.StringIO())
    show_training(History(folder), console)
    rows = console.export_text().splitlines()
    assert max(map(len, rows)) <= 80
    (success,) = [row.split() for row in rows if row.startswith("test success")]
    assert success[2:8] == ["2.5", "%", "70.0", "%", "71.2", "%"]
    assert success[8][0] == "▁" and success[8][-1] == "█"
