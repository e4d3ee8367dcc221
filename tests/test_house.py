"""The house: which folder may import which, the links, start-up time, and sizes."""

from __future__ import annotations

import ast
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
FOLDERS = ("envs", "agents", "algos", "benchmarks")
LOWER = {folder: set(FOLDERS[: i + 1]) for i, folder in enumerate(FOLDERS)}
MODULES = sorted(path for folder in FOLDERS for path in (ROOT / folder).rglob("*.py"))


def imported(path: Path) -> set[str]:
    """Every module that the file imports, at its top or inside a function."""
    names: set[str] = set()
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            names.update(alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path}: imports are absolute"
            assert node.module is not None
            names.add(node.module)
            names.update(f"{node.module}.{alias.name}" for alias in node.names)
    return names


def faults(folder: str, names: set[str]) -> list[str]:
    """The imports that the folder may not have."""
    found = []
    for name in sorted(names):
        parts = name.split(".")
        if parts[0] in FOLDERS:
            found.append(f"{name}: say tetrathlon.{name}")
        if parts[0] == "tetrathlon" and len(parts) > 1 and parts[1] in FOLDERS and parts[1] not in LOWER[folder]:
            found.append(f"{name}: arrows run benchmarks -> algos -> agents -> envs")
        if folder == "envs" and parts[0] in ("torch", "transformers"):
            found.append(f"{name}: envs imports no torch")
        if folder == "algos" and parts[0] in ("transformers", "mujoco", "tokenizers", "vllm", "gymnasium"):
            found.append(f"{name}: algos knows no domain")
    return found


@pytest.mark.parametrize("path", MODULES, ids=lambda path: str(path.relative_to(ROOT)))
def test_arrows(path: Path) -> None:
    assert not faults(path.relative_to(ROOT).parts[0], imported(path))


@pytest.mark.parametrize(
    ("folder", "name"),
    [
        ("envs", "torch"),
        ("envs", "tetrathlon.agents.policy"),
        ("agents", "tetrathlon.algos.losses"),
        ("algos", "transformers"),
        ("algos", "mujoco"),
        ("agents", "envs.slots"),
    ],
)
def test_a_forbidden_arrow_is_seen(folder: str, name: str) -> None:
    assert faults(folder, {name})
    assert not faults("benchmarks", {"tetrathlon.algos.losses", "torch"})


def test_links_show_the_folders_under_the_package() -> None:
    for folder in FOLDERS:
        link = ROOT / "tetrathlon" / folder
        assert link.is_symlink() and link.resolve() == ROOT / folder
        assert not Path(link.readlink()).is_absolute()


@pytest.mark.parametrize("path", MODULES, ids=lambda path: str(path.relative_to(ROOT)))
def test_modules_stay_small(path: Path) -> None:
    assert len(path.read_text(encoding="utf-8").splitlines()) <= 400


def test_import_is_light() -> None:
    code = (
        "import sys, time; start = time.process_time(); import tetrathlon; "
        "print(time.process_time() - start); "
        "print(sorted(m for m in ('torch', 'transformers', 'matplotlib', 'mujoco', 'scipy') if m in sys.modules))"
    )
    seconds, heavy = min(
        subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.split("\n")[:2]
        for _ in range(3)
    )
    assert heavy == "[]"
    assert float(seconds) < 1.0


def test_importing_agents_and_algos_names_needs_no_torch_until_used() -> None:
    code = "import sys, tetrathlon.agents, tetrathlon.benchmarks; print('torch' in sys.modules)"
    out = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
    assert out.strip() == "False"
