"""The wheel: what is in it, and that it works in an empty environment from another folder."""

from __future__ import annotations

import shutil
import subprocess
import sys
import sysconfig
import venv
import zipfile
from pathlib import Path

import pytest
from setuptools import find_packages

ROOT = Path(__file__).resolve().parent.parent
FOLDERS = ("envs", "agents", "algos", "benchmarks")


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("dist")
    source = out / "source"  # a copy: what an earlier build left in the checkout must not get in
    skip = shutil.ignore_patterns(
        ".git", "build", "dist", "*.egg-info", "__pycache__", ".*_cache", ".venv", "runs", "bench"
    )
    shutil.copytree(ROOT, source, symlinks=True, ignore=skip)
    build = [sys.executable, "-m", "build", "--sdist", "--wheel", "--no-isolation", "--outdir", str(out), str(source)]
    done = subprocess.run(build, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout[-2000:] + done.stderr[-2000:]
    (path,) = out.glob("*.whl")
    return path


def test_wheel_holds_every_module_and_asset_once(wheel: Path) -> None:
    names = zipfile.ZipFile(wheel).namelist()
    expected = {
        f"tetrathlon/{path.relative_to(ROOT)}"
        for folder in FOLDERS
        for path in (ROOT / folder).rglob("*")
        if path.is_file() and "__pycache__" not in path.parts and (path.suffix == ".py" or "assets" in path.parts)
    }
    expected |= {
        f"tetrathlon/{path.name}" for path in (ROOT / "tetrathlon").iterdir() if path.suffix in (".py", ".typed")
    }
    shipped = {name for name in names if ".dist-info/" not in name}
    assert shipped == expected
    assert len(names) == len(set(names))
    assert not any(name.split("/")[0] in FOLDERS for name in names)
    packages = {f"tetrathlon.{name}" for name in find_packages(str(ROOT), include=[f"{f}*" for f in FOLDERS])}
    modules = [name for name in shipped if name.endswith(".py") and "/assets/" not in name]  # programs of a peer's venv
    assert {name.rsplit("/", 1)[0].replace("/", ".") for name in modules} == {"tetrathlon", *packages}


def test_wheel_works_in_an_empty_environment_from_another_folder(wheel: Path, tmp_path: Path) -> None:
    home = tmp_path / "venv"
    venv.create(home, with_pip=False)
    site = Path(sysconfig.get_path("purelib", "venv", {"base": str(home), "platbase": str(home)}))
    zipfile.ZipFile(wheel).extractall(site)
    # The dependencies come from this environment; the package itself must come from the wheel.
    paths = [path for path in sys.path if path.endswith("site-packages")]
    (site / "dependencies.pth").write_text("\n".join(paths))
    code = (
        "import tetrathlon, gymnasium as gym; print(tetrathlon.__file__); "
        "env = gym.make('tetrathlon/Arithmetic-v0', digits=1); env.reset(seed=0); "
        "print(env.step(env.unwrapped.expert_action())[1])"
    )
    done = subprocess.run([str(home / "bin" / "python"), "-c", code], capture_output=True, text=True, cwd=tmp_path)
    assert done.returncode == 0, done.stderr[-2000:]
    where, paid = done.stdout.split()
    assert Path(where).is_relative_to(home) and paid == "1.0"
    by_prefix = "import gymnasium as gym; print(gym.make('tetrathlon:tetrathlon/Arithmetic-v0').spec.id)"
    done = subprocess.run([str(home / "bin" / "python"), "-c", by_prefix], capture_output=True, text=True, cwd=tmp_path)
    assert done.stdout.strip() == "tetrathlon/Arithmetic-v0", done.stderr[-2000:]


@pytest.mark.index
@pytest.mark.parametrize(
    "extra", ["torch", "llm", "mcp", "ocr", "vllm", "robots", "data", "video", "track", "sb3", "all", "test", "dev"]
)
def test_every_extra_resolves(extra: str) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "pip", "install", "--dry-run", "--quiet", f"{ROOT}[{extra}]"],
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr[-2000:]
