"""How the worker of a sandbox is started: inside bubblewrap, or as a plain process with fewer walls."""

from __future__ import annotations

import functools
import marshal
import os
import secrets
import shutil
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path

BOX = "/box"
_MODULES = ("sandbox_cell", "sandbox_script", "sandbox_keeper", "sandbox_worker")
_BOOT = (
    "import marshal, sys, types\n"
    "with open(0, 'rb', closefd=False, buffering=0) as host:\n"
    "    data, size = b'', int.from_bytes(host.read(8), 'little')\n"
    "    while len(data) < size:\n"
    "        data += host.read(size - len(data)) or sys.exit('the host is gone')\n"
    "for name in ('tetrathlon', 'tetrathlon.envs'):\n"
    "    sys.modules[name] = types.ModuleType(name)\n"
    "for name, code in marshal.loads(data):\n"
    "    name = 'tetrathlon.envs.' + name\n"
    "    sys.modules[name] = types.ModuleType(name)\n"
    "    exec(code, sys.modules[name].__dict__)\n"
    "del data, code\n"
    "sys.modules[name].main(sys.argv[1], sys.argv[2], int(sys.argv[3]))\n"
)
"""Gets the modules of the worker, compiled, from the host: a worker that compiled them would be twice as large, and
every fork would carry that."""
_SH = 'unset PWD OLDPWD SHLVL; echo "$0" 2>/dev/null >/proc/self/oom_score_adj; exec "$@"'
"""What is started inherits the score; bubblewrap shows its worker no `/proc` to set it in."""
_WORSE, _WORST = 500, 1000
_FIRST_UID, _UIDS = 1 << 30, 1 << 29  # far from the users of any system


@dataclass(frozen=True, kw_only=True)
class Launch:
    """One way to start a worker."""

    isolation: str
    """``bwrap`` or ``none``."""
    command: tuple[str, ...]
    """The command line; the socket to the host is its stdin."""
    environment: dict[str, str]
    """All of its environment."""
    box: str = ""
    """The host's folder for scratch space, to be removed after; without bubblewrap only."""


@functools.cache
def modules() -> bytes:
    """Return what a worker reads first: its modules."""
    here = Path(__file__).parent
    sources = ((name, (here / f"{name}.py").read_bytes()) for name in _MODULES)
    # Without docstrings: they too would be carried by every fork.
    code = [(name, compile(source, name, "exec", dont_inherit=True, optimize=2)) for name, source in sources]
    data = marshal.dumps(code)
    return len(data).to_bytes(8, "little") + data


def launches(isolation: str) -> list[Launch]:
    """Return the ways to start a worker with ``isolation``, ``"bwrap"`` or ``"none"``, the best first."""
    is_root = os.geteuid() == 0
    uid = _FIRST_UID + secrets.randbelow(_UIDS) if is_root else 0
    if isolation == "none":
        box = tempfile.mkdtemp(prefix="tetrathlon-")
        os.chmod(box, 0o711)  # programs may be another user
        command = (*_expendable(), *_python("processes", box, uid))
        return [Launch(isolation="none", command=command, environment=_environment("/"), box=box)]
    bwrap = shutil.which("bwrap")
    if bwrap is None:
        return []
    ways: list[tuple[str, ...]] = [("--unshare-user", "--uid", "1000", "--gid", "1000")]
    if is_root:  # true root can give programs a user of their own
        ways.insert(0, ())
    return [
        Launch(
            isolation="bwrap",
            command=(*_expendable(), bwrap, *way, *_walls(), *_python("namespaces", BOX, 0 if way else uid)),
            environment=_environment(f"{BOX}/work"),
        )
        for way in ways
    ]


def _expendable() -> tuple[str, ...]:
    """Return what starts a command so that the kernel, short of memory, kills it before this process."""
    try:
        score = int(Path("/proc/self/oom_score_adj").read_text())
    except OSError:  # a kernel without it
        return ()
    return ("/bin/sh", "-c", _SH, str(min(score + _WORSE, _WORST)))


def _executable() -> str:
    return os.path.realpath(sys._base_executable)  # type: ignore[attr-defined]


def _python(mode: str, box: str, uid: int) -> tuple[str, ...]:
    # Not -I, which would ignore PYTHONHASHSEED; the environment is ours anyway.
    return (_executable(), "-s", "-S", "-P", "-c", _BOOT, mode, box, str(uid))


def _environment(home: str) -> dict[str, str]:
    return {
        "PATH": os.path.dirname(_executable()),
        "HOME": home,
        "LANG": "C.UTF-8",
        "PYTHONHASHSEED": "0",
        "PYTHONDONTWRITEBYTECODE": "1",
        "LD_BIND_NOW": "1",  # symbols are bound once in the worker, not again in each of its children
    }


def _walls() -> list[str]:
    """Return the arguments of bubblewrap: new namespaces, and no file but what the interpreter needs."""
    walls = ["--unshare-pid", "--unshare-net", "--unshare-ipc", "--unshare-uts", "--unshare-cgroup-try"]
    walls += ["--as-pid-1", "--cap-drop", "ALL"]
    for capability in ("SYS_ADMIN", "SETUID", "SETGID", "SETPCAP", "KILL"):
        walls += ["--cap-add", f"CAP_{capability}"]
    files = [("--ro-bind-try", folder, folder) for folder in ("/usr/lib", "/usr/lib64", "/usr/lib32", "/usr/libx32")]
    for folder in ("/lib", "/lib64", "/lib32", "/libx32"):
        is_link = os.path.islink(folder)
        files.append(("--symlink", os.readlink(folder), folder) if is_link else ("--ro-bind-try", folder, folder))
    files.append(("--ro-bind-try", "/etc/ld.so.cache", "/etc/ld.so.cache"))
    python = Path(_executable())
    library = python.parent.parent / "lib"
    if library != Path("/usr/lib"):
        files.append(("--ro-bind", str(library), str(library)))
    files.append(("--ro-bind", str(python), str(python)))
    files += [("--symlink", python.name, str(python.parent / name)) for name in {"python", "python3"} - {python.name}]
    for device in ("null", "zero", "full", "random", "urandom"):
        files.append(("--dev-bind", f"/dev/{device}", f"/dev/{device}"))
    files += [("--symlink", f"{BOX}/shm", "/dev/shm"), ("--symlink", f"{BOX}/tmp", "/tmp")]
    folders = {str(folder) for _, _, path in files for folder in Path(path).parents} | {BOX}
    for folder in sorted(folders - {"/"}):  # bubblewrap would make them for its own user only
        walls += ["--dir", folder]
    for file in files:
        walls += file
    for packages in _packages(library):
        walls += ["--tmpfs", packages, "--remount-ro", packages]
    return [*walls, "--chdir", "/", "--remount-ro", "/", "--"]


def _packages(library: Path) -> list[str]:
    """Return the folders of installed packages under ``library``, which programs are not shown."""
    found = []
    for folder in library.glob("python3*"):
        found += [str(folder / name) for name in ("site-packages", "dist-packages") if (folder / name).is_dir()]
    return found
