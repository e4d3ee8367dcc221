"""Where foreign programs run: what a child of the worker does to itself before it runs foreign code.

Every program is process 1 of a process namespace of its own. The kernel kills that namespace with its first process,
before a parent hears of the end, so nothing a program started outlives it; and a program has no name for the worker.
Its scratch folder is a file system in a mount namespace of its own, which goes the same way. Without namespaces the
worker adopts orphans and hunts them down.

Runs in the worker's bare interpreter: the standard library only.
"""

from __future__ import annotations

import contextlib
import ctypes
import os
import resource
import signal
import struct
from typing import Any

_CLONE_NEWNS, _CLONE_NEWPID = 0x20000, 0x20000000
_MS_NOSUID, _MS_NODEV, _MS_REC, _MS_PRIVATE = 2, 4, 0x4000, 0x40000
_PR_SET_PDEATHSIG, _PR_SET_DUMPABLE, _PR_SET_KEEPCAPS, _PR_SET_SECCOMP, _PR_CAPBSET_DROP = 1, 4, 8, 22, 24
_PR_SET_CHILD_SUBREAPER, _PR_SET_NO_NEW_PRIVS, _PR_CAP_AMBIENT = 36, 38, 47
_PR_CAP_AMBIENT_RAISE = 2
_CAP_DAC_READ_SEARCH = 2
_LINUX_CAPABILITY_VERSION_3 = 0x20080522
_SECCOMP_ERRNO, _SECCOMP_ALLOW, _SECCOMP_FILTER = 0x00050000, 0x7FFF0000, 2
_EPERM, _ENOSYS = 1, 38
_AF_UNIX = 1
_NAMESPACE_FLAGS = 0x7E020080  # every CLONE_NEW* flag
# What no program needs: other processes' memory, namespaces, mounts, keyrings, memory that no limit counts, and the
# widest doors into the kernel. Numbers for x86_64 and aarch64.
_DENIED = {
    "add_key": (248, 217),
    "bpf": (321, 280),
    "chroot": (161, 51),
    "fsopen": (430, 430),
    "io_uring_enter": (426, 426),
    "io_uring_register": (427, 427),
    "io_uring_setup": (425, 425),
    "kcmp": (312, 272),
    "keyctl": (250, 219),
    "memfd_create": (319, 279),
    "memfd_secret": (447, 447),
    "mount": (165, 40),
    "mount_setattr": (442, 442),
    "move_mount": (429, 429),
    "mq_open": (240, 180),
    "msgget": (68, 186),
    "open_tree": (428, 428),
    "perf_event_open": (298, 241),
    "pidfd_getfd": (438, 438),
    "pivot_root": (155, 41),
    "process_vm_readv": (310, 270),
    "process_vm_writev": (311, 271),
    "ptrace": (101, 117),
    "request_key": (249, 218),
    "semget": (64, 190),
    "setns": (308, 268),
    "shmget": (29, 194),
    "umount2": (166, 39),
    "unshare": (272, 97),
    "userfaultfd": (323, 282),
}
_MACHINES = {
    "x86_64": (0xC000003E, 0, 56, 41),
    "aarch64": (0xC00000B7, 1, 220, 198),
}  # audit number, column, clone, socket
_CLONE3 = 435

_libc = ctypes.CDLL(None, use_errno=True)
for _name in ("capset", "mount", "prctl", "setns", "unshare"):
    getattr(_libc, _name)  # looked up here, not again in each child


def _call(name: str, *arguments: Any) -> None:
    if getattr(_libc, name)(*arguments) < 0:
        number = ctypes.get_errno()
        raise OSError(number, f"{name}: {os.strerror(number)}")


class _Filter:
    """The system calls that a program may make, as a seccomp program."""

    def __init__(self) -> None:
        machine = os.uname().machine
        if machine not in _MACHINES:
            raise OSError(_ENOSYS, f"the sandbox knows the system calls of {sorted(_MACHINES)}, not of {machine}")
        audit, column, clone, socket = _MACHINES[machine]
        load, equal, at_least, masked, answer = 0x20, 0x15, 0x35, 0x45, 0x06
        refuse = (answer, 0, 0, _SECCOMP_ERRNO | _EPERM)
        code = [(load, 0, 0, 4), (equal, 1, 0, audit), refuse, (load, 0, 0, 0)]
        code += [(at_least, 0, 1, 0x40000000), refuse]  # x32, the other set of numbers of x86_64
        code += [(equal, 0, 1, _CLONE3), (answer, 0, 0, _SECCOMP_ERRNO | _ENOSYS)]  # then libc uses clone
        for numbers in _DENIED.values():
            code += [(equal, 0, 1, numbers[column]), refuse]
        code += [(equal, 0, 3, clone), (load, 0, 0, 16), (masked, 0, 1, _NAMESPACE_FLAGS), refuse]
        code += [(load, 0, 0, 0), (equal, 0, 3, socket), (load, 0, 0, 16), (equal, 1, 0, _AF_UNIX), refuse]
        code += [(answer, 0, 0, _SECCOMP_ALLOW)]
        self._code = ctypes.create_string_buffer(b"".join(struct.pack("<HBBI", *line) for line in code))
        self._program = ctypes.create_string_buffer(struct.pack("@HP", len(code), ctypes.addressof(self._code)))

    def apply(self) -> None:
        """Hold this process, and what it starts, to the filter for ever."""
        _call("prctl", _PR_SET_SECCOMP, _SECCOMP_FILTER, self._program, 0, 0)


def can_others_read(path: str) -> bool:
    """Tell whether every user may go to ``path``."""
    while path != "/":
        if not os.stat(path).st_mode & 0o001:
            return False
        path = os.path.dirname(path)
    return True


class Cell:
    """Walls around programs, in the worker and in each of its children.

    Args:
        mode: ``namespaces``: inside the namespaces that bubblewrap made; ``processes``: there are none.
        box: Folder for scratch space.
        uid: User and group of programs; 0: the worker's own.
    """

    def __init__(self, mode: str, box: str, uid: int) -> None:
        self.has_namespaces = mode == "namespaces"
        self.box = box if self.has_namespaces else f"{box}/box"
        self.folder = f"{self.box}/work"
        self.uid = uid
        self._filter = _Filter()
        self._own_namespace = os.pidfd_open(os.getpid())
        # Another user cannot read an interpreter under /root; without a mount of its own it needs this one right.
        is_hidden = bool(uid) and not self.has_namespaces and not can_others_read(os.path.dirname(os.__file__))
        self._kept_capability = _CAP_DAC_READ_SEARCH if is_hidden else None
        kept = 1 << _CAP_DAC_READ_SEARCH if is_hidden else 0
        self._capabilities = (
            ctypes.create_string_buffer(struct.pack("<Ii", _LINUX_CAPABILITY_VERSION_3, 0)),
            ctypes.create_string_buffer(struct.pack("<6I", kept, kept, kept, 0, 0, 0)),
        )
        _call("prctl", _PR_SET_DUMPABLE, 0, 0, 0, 0)
        _call("prctl", _PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0)
        if self.has_namespaces:
            _call("mount", b"none", b"/", None, _MS_REC | _MS_PRIVATE, None)
            _call("prctl", _PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)  # with bubblewrap, its parent
        else:
            _call("prctl", _PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
        if self.has_namespaces or uid:
            for capability in range(64):
                if capability != self._kept_capability:
                    _libc.prctl(_PR_CAPBSET_DROP, capability, 0, 0, 0)  # fails beyond the last one there is

    def fork(self) -> int:
        """Fork; the child is the first process of a new process namespace."""
        if self.has_namespaces:
            _call("setns", self._own_namespace, _CLONE_NEWPID)
            _call("unshare", _CLONE_NEWPID)
        return os.fork()

    def enter(self, limits: dict[str, int], files: dict[str, bytes], stdin: bytes) -> int:
        """Shut this process, a child, into a new scratch folder and under its limits.

        Returns:
            A file that holds ``stdin``, open for reading.
        """
        os.setsid()
        box = self.box
        if self.has_namespaces:
            _call("unshare", _CLONE_NEWNS)
            megabytes, owner = limits["disk_mb"], self.uid or os.getuid()
            options = f"size={megabytes}m,nr_inodes={16 * megabytes + 1024},mode=755,uid={owner},gid={owner}"
            _call("mount", b"tmpfs", box.encode(), b"tmpfs", _MS_NOSUID | _MS_NODEV, options.encode())
        else:
            os.mkdir(box, 0o700)
            if self.uid:
                os.chown(box, self.uid, self.uid)
        self._drop_rights()
        for name in ("work", "tmp", "shm"):
            os.mkdir(f"{box}/{name}")
        os.chdir(self.folder)
        for name, content in files.items():
            if folder := os.path.dirname(name):
                os.makedirs(folder, exist_ok=True)
            with open(name, "wb") as file:
                file.write(content)
        reader = _hold(stdin, f"{box}/tmp/stdin")
        for number, most in (
            (resource.RLIMIT_AS, limits["memory_mb"] << 20),
            (resource.RLIMIT_CPU, limits["cpu_seconds"]),
            (resource.RLIMIT_FSIZE, limits["file_mb"] << 20),
            (resource.RLIMIT_NPROC, limits["processes"] + self._other_processes()),
            (resource.RLIMIT_CORE, 0),
            (resource.RLIMIT_MEMLOCK, 0),
        ):
            _limit(number, most)
        return reader

    def seal(self, limits: dict[str, int]) -> None:
        """Take the last steps before foreign code, when every file is open."""
        _limit(resource.RLIMIT_NOFILE, limits["open_files"])
        self._filter.apply()

    def _drop_rights(self) -> None:
        kept = self._kept_capability
        if self.uid:
            if kept is not None:
                _call("prctl", _PR_SET_KEEPCAPS, 1, 0, 0, 0)
            os.setgroups([])
            os.setresgid(self.uid, self.uid, self.uid)
            os.setresuid(self.uid, self.uid, self.uid)
        if self.has_namespaces or self.uid:
            _call("capset", *self._capabilities)
        if kept is not None:
            _call("prctl", _PR_CAP_AMBIENT, _PR_CAP_AMBIENT_RAISE, kept, 0, 0)
        if not self.has_namespaces:
            _call("prctl", _PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)

    def _other_processes(self) -> int:
        """How many processes and threads of the program's user the limit must not count."""
        if self.uid:
            return 0
        if self.has_namespaces:
            return 1  # the worker; nobody else is of this user namespace
        user, count = os.getuid(), 0
        for name in os.listdir("/proc"):
            try:
                if name.isdigit() and os.stat(f"/proc/{name}").st_uid == user:
                    count += len(os.listdir(f"/proc/{name}/task"))
            except OSError:
                continue  # it ended meanwhile
        return count - 1  # this one is the program

    def sweep(self, pid: int) -> tuple[int, Any]:
        """Kill the program ``pid`` and all it started, wait for it, and leave nothing of it.

        Returns:
            Its wait status and what it used.
        """
        if self.has_namespaces:
            os.kill(pid, signal.SIGKILL)
            _, status, usage = os.wait4(pid, 0)
            return status, usage
        self._kill_descendants()
        _, status, usage = os.wait4(pid, 0)
        self._reap()
        return status, usage

    def close(self) -> None:
        """Kill every program; the worker is about to end."""
        if not self.has_namespaces:
            self._kill_descendants()
            self._reap()
            os.rmdir(os.path.dirname(self.box))

    def _reap(self) -> None:
        while True:
            try:
                os.waitpid(-1, 0)
            except ChildProcessError:
                break
        _remove(self.box)

    def _kill_descendants(self) -> None:
        # Stopped first: a frozen process forks no more and still fills its place under the limit on processes, so
        # this comes to an end with every fork bomb.
        stopped: set[int] = set()
        while True:
            seen = _descendants(os.getpid())
            if seen <= stopped:
                break
            for pid in seen - stopped:
                _signal(pid, signal.SIGSTOP)
            stopped |= seen
        for pid in stopped:
            _signal(pid, signal.SIGKILL)


def _limit(number: int, most: int) -> None:
    hardest = resource.getrlimit(number)[1]
    most = most if hardest == resource.RLIM_INFINITY else min(most, hardest)
    resource.setrlimit(number, (most, most))


def _hold(stdin: bytes, path: str) -> int:
    """Return a reader of ``stdin`` through a file without a name: no pipe fills up, and the end is the end."""
    if not stdin:
        return os.open("/dev/null", os.O_RDONLY)
    with open(path, "xb") as file:
        file.write(stdin)
    reader = os.open(path, os.O_RDONLY)
    os.unlink(path)
    return reader


def _signal(pid: int, number: int) -> None:
    with contextlib.suppress(ProcessLookupError):
        os.kill(pid, number)


def _descendants(pid: int) -> set[int]:
    children: dict[int, list[int]] = {}
    for name in os.listdir("/proc"):
        if name.isdigit():
            try:
                with open(f"/proc/{name}/stat", "rb") as file:
                    parent = int(file.read().rpartition(b")")[2].split()[1])
            except OSError:
                continue  # it ended meanwhile
            children.setdefault(parent, []).append(int(name))
    found, queue = set(), [pid]
    while queue:
        for child in children.get(queue.pop(), ()):
            found.add(child)
            queue.append(child)
    return found


def _remove(folder: str) -> None:
    """Remove a folder, however deep and whatever its modes; nobody else is at work in it any more."""
    if not os.path.isdir(folder):
        return
    os.chdir(folder)
    left = [_clear()]
    while left:
        if left[-1]:
            os.chmod(left[-1][-1], 0o700)
            os.chdir(left[-1][-1])
            left.append(_clear())
        else:
            left.pop()
            os.chdir("..")
            if left:
                os.rmdir(left[-1].pop())
    os.chdir("/")
    os.rmdir(folder)


def _clear() -> list[str]:
    """Unlink the files of the working folder and return its folders."""
    folders = []
    with os.scandir() as entries:
        for entry in entries:
            if entry.is_dir(follow_symlinks=False):
                folders.append(entry.name)
            else:
                os.unlink(entry.name)
    return folders
