"""Build envs/, agents/, algos/ and benchmarks/ as tetrathlon.*; pyproject.toml has the rest."""

from setuptools import find_packages, setup

FOLDERS = ("envs", "agents", "algos", "benchmarks")
PATTERNS = [pattern for folder in FOLDERS for pattern in (folder, f"{folder}.*")]

setup(
    packages=["tetrathlon", *(f"tetrathlon.{name}" for name in find_packages(include=PATTERNS))],
    package_dir={"tetrathlon": "tetrathlon"} | {f"tetrathlon.{folder}": folder for folder in FOLDERS},
)
