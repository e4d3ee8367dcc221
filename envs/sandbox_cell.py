"""Where foreign programs run: what a process does to itself before it runs foreign code, and what is done after it.

Every program is process 1 of a process namespace of its own. The kernel kills that namespace with its first process,
before a parent hears of the end, so nothing a program started outlives it; and a program has no name for its keeper.
Its scratch folder is a file system of its own, in a mount namespace that it shares with its keeper alone. Without
namespaces the keeper adopts orphans and hunts them down.

Runs in the worker's bare interpreter: the standard library only.
"""

from __future__ import annotations

import contextlib
import ctypes
import os
import resource
import signal
import struct

TYPE_CHECKING = False
if TYPE_CHECKING:  # every fork would carry `typing`
    from collections.abc import Mapping
    from typing import Any

_CLONE_NEWNS, _CLONE_NEWPID = 0x20000, 0x20000000
_MS_NOSUID, _MS_NODEV, _MS_REMOUNT, _MS_REC, _MS_PRIVATE = 2, 4, 32, 0x4000, 0x40000
_MNT_DETACH = 2
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
for _name in ("capset", "mount", "prctl", "setns", "umount2", "unshare"):
    getattr(_libc, _name)  # looked up here, not again in each child
# What a keeper does itself, by the argument that is looked at and its values. Its programs inherit the keeper's filter,
# so that none is compiled for each of them, and the kernel refuses them these calls for want of a capability.
_MOUNT_FLAGS = _MS_NOSUID | _MS_NODEV
_KEPT = {
    "mount": (3, (_MOUNT_FLAGS, _MOUNT_FLAGS | _MS_REMOUNT)),
    "setns": (1, (_CLONE_NEWPID,)),
    "umount2": (1, (_MNT_DETACH,)),
    "unshare": (0, (_CLONE_NEWPID,)),
}
_LIMITED = (
    resource.RLIMIT_AS,
    resource.RLIMIT_CPU,
    resource.RLIMIT_FSIZE,
    resource.RLIMIT_NPROC,
    resource.RLIMIT_NOFILE,
)
_ENDLESS = 1 << 62
_DISK_MB = 64
"""Size of a scratch folder that is made ahead; another one costs a call more."""
_BYSTANDERS = 4
"""The worker, its two keepers and the cell that waits; while that one is being made, a program may have one more."""


def _call(name: str, *arguments: Any) -> None:
    if getattr(_libc, name)(*arguments) < 0:
        number = ctypes.get_errno()
        raise OSError(number, f"{name}: {os.strerror(number)}")


class _Filter:
    """The system calls that a program may make, as a seccomp program.

    Args:
        kept: Those of the forbidden ones that are allowed with one argument of certain values.
    """

    def __init__(self, kept: Mapping[str, tuple[int, tuple[int, ...]]]) -> None:
        machine = os.uname().machine
        if machine not in _MACHINES:
            raise OSError(_ENOSYS, f"the sandbox knows the system calls of {sorted(_MACHINES)}, not of {machine}")
        audit, column, clone, socket = _MACHINES[machine]
        load, equal, at_least, masked, answer = 0x20, 0x15, 0x35, 0x45, 0x06
        refuse = (answer, 0, 0, _SECCOMP_ERRNO | _EPERM)
        code = [(load, 0, 0, 4), (equal, 1, 0, audit), refuse, (load, 0, 0, 0)]
        code += [(at_least, 0, 1, 0x40000000), refuse]  # x32, the other set of numbers of x86_64
        code += [(equal, 0, 1, _CLONE3), (answer, 0, 0, _SECCOMP_ERRNO | _ENOSYS)]  # then libc uses clone
        for name, numbers in _DENIED.items():
            which, values = kept.get(name, (0, ()))
            if values:
                code += [(equal, 0, len(values) + 3, numbers[column]), (load, 0, 0, 16 + 8 * which)]
                code += [(equal, len(values) - i, 0, value) for i, value in enumerate(values)]
                code += [refuse, (answer, 0, 0, _SECCOMP_ALLOW)]
            else:
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
    """Walls around programs: in the worker, in its keepers, and in the children of these.

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
        self._filter = _Filter(_KEPT if self.has_namespaces else {})
        # Another user cannot read an interpreter under /root; without a mount of its own it needs this one right.
        is_hidden = bool(uid) and not self.has_namespaces and not can_others_read(os.path.dirname(os.__file__))
        self._kept_capability = _CAP_DAC_READ_SEARCH if is_hidden else None
        kept = 1 << _CAP_DAC_READ_SEARCH if is_hidden else 0
        self._capabilities = (
            ctypes.create_string_buffer(struct.pack("<Ii", _LINUX_CAPABILITY_VERSION_3, 0)),
            ctypes.create_string_buffer(struct.pack("<6I", kept, kept, kept, 0, 0, 0)),
        )
        self._own_namespace = -1
        hard = (resource.getrlimit(number)[1] for number in _LIMITED)
        self._hard = [_ENDLESS if most == resource.RLIM_INFINITY else most for most in hard]
        _call("prctl", _PR_SET_DUMPABLE, 0, 0, 0, 0)
        _call("prctl", _PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0)
        if self.has_namespaces:
            _call("mount", b"none", b"/", None, _MS_REC | _MS_PRIVATE, None)
            _call("prctl", _PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)  # with bubblewrap, its parent
        if self.has_namespaces or uid:
            for capability in range(64):
                if capability != self._kept_capability:
                    _libc.prctl(_PR_CAPBSET_DROP, capability, 0, 0, 0)  # fails beyond the last one there is

    def settle(self) -> None:
        """Make this process, a child of the worker, a keeper of cells."""
        if self.has_namespaces:
            self._own_namespace = os.pidfd_open(os.getpid())
            _call("unshare", _CLONE_NEWNS)
        else:
            _call("prctl", _PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
            _call("prctl", _PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)
        if self.uid:
            os.setgroups([])
            os.setresgid(self.uid, self.uid, self.uid)
        for number in (resource.RLIMIT_CORE, resource.RLIMIT_MEMLOCK):
            resource.setrlimit(number, (0, 0))
        self._filter.apply()

    def make(self) -> None:
        """Make an empty scratch folder, and go there."""
        if self.has_namespaces:
            self._mount(_DISK_MB, 0)
        else:
            os.mkdir(self.box, 0o700)
        if self.uid:
            if not self.has_namespaces:
                os.chown(self.box, self.uid, self.uid)
            os.seteuid(self.uid)
        for name in ("work", "tmp", "shm"):
            os.mkdir(f"{self.box}/{name}")
        os.chdir(self.folder)
        if self.uid:
            os.seteuid(0)

    def _mount(self, megabytes: int, flags: int) -> None:
        owner = self.uid or os.getuid()
        options = f"size={megabytes}m,nr_inodes={16 * megabytes + 1024},mode=755,uid={owner},gid={owner}"
        _call("mount", b"tmpfs", self.box.encode(), b"tmpfs", _MOUNT_FLAGS | flags, options.encode())

    def fork(self) -> int:
        """Fork; the child is the first process of a new process namespace."""
        if self.has_namespaces:
            _call("setns", self._own_namespace, _CLONE_NEWPID)
            _call("unshare", _CLONE_NEWPID)
        return os.fork()

    def enter(self, stdin: bytes, files: dict[str, bytes], disk_mb: int, most: tuple[int, ...]) -> None:
        """Shut this process, a child, in for ever, and under the limits of its program.

        Args:
            stdin: What is on fd 0.
            files: What lies in the working folder.
            disk_mb: Size of the scratch folder.
            most: Bytes of memory, processor seconds, bytes of a file, processes and open files.
        """
        os.setsid()
        if self.has_namespaces and disk_mb != _DISK_MB:
            self._mount(disk_mb, _MS_REMOUNT)
        self._drop_rights()
        for name, content in files.items():
            if folder := os.path.dirname(name):
                os.makedirs(folder, exist_ok=True)
            with open(name, "wb") as file:
                file.write(content)
        if stdin:
            _hold(stdin, f"{self.box}/tmp/stdin")
        for number, wanted, hardest in zip(_LIMITED, most, self._hard, strict=True):
            if number == resource.RLIMIT_NPROC:
                wanted += self._other_processes()
            wanted = min(wanted, hardest)
            resource.setrlimit(number, (wanted, wanted))

    def _drop_rights(self) -> None:
        kept = self._kept_capability
        if self.uid:
            if kept is not None:
                _call("prctl", _PR_SET_KEEPCAPS, 1, 0, 0, 0)
            os.setresuid(self.uid, self.uid, self.uid)
        if (not self.uid and self.has_namespaces) or kept is not None:  # else they went with the user
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
            return _BYSTANDERS  # nobody else is of this user namespace
        user, count = os.getuid(), 0
        for name in os.listdir("/proc"):
            try:
                if name.isdigit() and os.stat(f"/proc/{name}").st_uid == user:
                    count += len(os.listdir(f"/proc/{name}/task"))
            except OSError:
                continue  # it ended meanwhile
        return count - 1  # this one is the program

    def wait(self, pid: int) -> tuple[int, float]:
        """Wait for the end of the program ``pid`` and of all that it started.

        Returns:
            Its wait status and the processor time it used.
        """
        _, status, usage = os.wait4(pid, 0)
        if not self.has_namespaces:  # else the kernel has killed and buried all others first
            self._kill_descendants()
            self._reap()
        return status, usage.ru_utime + usage.ru_stime

    def clear(self) -> None:
        """Leave nothing of a scratch folder whose program is over."""
        os.chdir("/")
        if self.has_namespaces:
            _call("umount2", self.box.encode(), _MNT_DETACH)
        else:
            _remove(self.box)

    def close(self) -> None:
        """Leave nothing; the keepers are gone and the worker is about to end."""
        if not self.has_namespaces:
            _remove(self.box)  # a program may have killed its keeper
            os.rmdir(os.path.dirname(self.box))

    def _reap(self) -> None:
        while True:
            try:
                os.waitpid(-1, 0)
            except ChildProcessError:
                break

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


def _hold(stdin: bytes, path: str) -> None:
    """Put ``stdin`` on fd 0 through a file without a name: no pipe fills up, and the end is the end."""
    with open(path, "xb") as file:
        file.write(stdin)
    reader = os.open(path, os.O_RDONLY)
    os.unlink(path)
    os.dup2(reader, 0)
    os.close(reader)


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
