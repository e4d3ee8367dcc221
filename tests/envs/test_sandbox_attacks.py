"""The table of docs/sandbox.md says what the attacks show."""

import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

from tests.envs.isolations import need_bubblewrap
from tests.envs.sandbox_attacks import ATTACKS, judge, prepare
from tetrathlon.envs.sandbox import Sandbox
from tetrathlon.envs.sandbox_cell import can_others_read

ROOT = Path(__file__).parents[2]
SYSTEM_PYTHON = f"/usr/bin/python3.{sys.version_info.minor}"
ALONE = """
import runpy, sys, types
for name in ("tetrathlon", "tetrathlon.envs"):
    sys.modules[name] = types.ModuleType(name)
    sys.modules[name].__path__ = [sys.argv[1]]
runpy.run_path(sys.argv[1] + "/sandbox_attacks.py", run_name="__main__")
"""
"""Runs the attacks from a copy that needs nothing but the standard library."""


def documented(column: int) -> dict[str, bool]:
    text = (ROOT / "docs/sandbox.md").read_text()
    rows = re.findall(r"^\| (.+?) +\| (held|open) +\| (held|open) +\| (held|open) +\|$", text, re.MULTILINE)
    return {name: cells[column] == "held" for name, *cells in rows}


@pytest.fixture(scope="module", params=["bwrap", "none"])
def sandbox(request):
    if request.param == "bwrap":
        need_bubblewrap()
    with Sandbox(isolation=request.param) as sandbox:
        yield sandbox


def test_the_table_has_a_row_for_each_attack():
    assert list(documented(0)) == list(ATTACKS)


@pytest.mark.parametrize("name", ATTACKS)
def test_the_table_says_what_an_attack_shows(sandbox, name, tmp_path, monkeypatch):
    monkeypatch.setenv("TETRATHLON_SECRET", "")  # put back afterwards
    tmp_path.parent.chmod(0o755)
    tmp_path.parent.parent.chmod(0o755)
    column = 0 if sandbox.isolation == "bwrap" else 1 if os.getuid() == 0 else 2
    expected = documented(column)[name]
    if name == "reading files of the caller alone" and column == 1:
        expected = can_others_read(os.path.dirname(os.__file__))  # else programs have the right to read every file
    assert judge(sandbox, name, prepare(tmp_path)) == expected


@pytest.mark.skipif(
    os.getuid() != 0 or not os.path.exists(SYSTEM_PYTHON) or not shutil.which("setpriv"),
    reason="needs root, to become an ordinary user, and an interpreter that such a user can read",
)
def test_the_table_holds_for_an_ordinary_user(tmp_path):
    need_bubblewrap()
    for folder in (tmp_path, *tmp_path.parents):
        if Path(tempfile.gettempdir()) in folder.parents:
            folder.chmod(0o755)
    for path in [*(ROOT / "envs").glob("sandbox*.py"), ROOT / "tests/envs/sandbox_attacks.py"]:
        shutil.copy(path, tmp_path)
    user = ["setpriv", "--reuid=12345", "--regid=12345", "--clear-groups"]
    done = subprocess.run(
        [*user, SYSTEM_PYTHON, "-c", ALONE, str(tmp_path)],
        capture_output=True,
        text=True,
        cwd="/",
        env={"PATH": "/usr/bin"},
    )
    assert done.returncode == 0, done.stderr
    shown = json.loads(done.stdout.splitlines()[-1])
    expected = {f"bwrap: {name}": held for name, held in documented(0).items()}
    assert shown == expected | {f"none: {name}": held for name, held in documented(2).items()}
