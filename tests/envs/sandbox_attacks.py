"""Attacks on the sandbox: programs, and how to tell whether the sandbox held.

Run as a script it prints what held, as JSON; it needs nothing but the standard library, so that another user can run it
from a copy.
"""

from __future__ import annotations

import contextlib
import json
import os
import secrets
import socket
import tempfile
import time
import warnings
from collections.abc import Callable
from pathlib import Path

from tetrathlon.envs.sandbox import Limits, Run, Sandbox, SandboxError

SECRET = "s3cret-of-the-caller"
QUICK = Limits(seconds=1.5, cpu_seconds=2.0)
ATTACKS: dict[str, Callable[[Sandbox, Path], bool]] = {}


def attack(name: str) -> Callable[[Callable[[Sandbox, Path], bool]], Callable[[Sandbox, Path], bool]]:
    def add(judge: Callable[[Sandbox, Path], bool]) -> Callable[[Sandbox, Path], bool]:
        ATTACKS[name] = judge
        return judge

    return add


def says(run: Run, text: str) -> bool:
    """Whether the program came to its end and reports that it was held."""
    assert run.status == "ok", run
    return run.stdout.strip() == text


def descendants() -> set[str]:
    """The live processes that this one, or what it started, has started."""
    parents = {}
    for stat in Path("/proc").glob("[0-9]*/stat"):
        try:
            fields = stat.read_text().rpartition(")")[2].split()
        except OSError:
            continue
        parents[stat.parent.name] = fields[1] if fields[0] != "Z" else ""
    found: set[str] = set()
    queue = {str(os.getpid())}
    while queue:
        queue = {pid for pid, parent in parents.items() if parent in queue} - found
        found |= queue
    return found


def settled(seconds: float) -> int:
    """How many :func:`descendants` there are when their number has been the same for so long."""
    count, since = len(descendants()), time.monotonic()
    while time.monotonic() - since < seconds:
        time.sleep(0.02)
        if (now := len(descendants())) != count:
            count, since = now, time.monotonic()
    return count


_USUAL: dict[int, int] = {}


def usual(sandbox: Sandbox) -> int:
    """How many descendants there are while ``sandbox`` waits with its next cell made.

    Counted once, and with patience: on a busy machine a cell is long in the making, and a count in the middle is low.
    """
    if id(sandbox) not in _USUAL:
        sandbox.run("pass")
        _USUAL[id(sandbox)] = settled(1.0)
    return _USUAL[id(sandbox)]


def waiting(sandbox: Sandbox) -> set[str]:
    """Return the descendants when the next cell of ``sandbox`` is made."""
    end = time.monotonic() + 5
    while len(found := descendants()) < usual(sandbox) and time.monotonic() < end:
        time.sleep(0.01)
    return found


def are_soon_at_most(count: int) -> bool:
    """Whether there are soon no more live processes than ``count``."""
    end = time.monotonic() + 5
    while len(descendants()) > count:
        if time.monotonic() > end:
            return False
        time.sleep(0.01)
    return settled(0.05) <= count


def resident() -> int:
    """Bytes of memory that this process holds."""
    return int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGESIZE")


@attack("fork bomb")
def _(sandbox: Sandbox, outside: Path) -> bool:
    code = """
import os
try:
    while True:
        os.fork()
except BlockingIOError:
    os.write(1, b"x")
while True: pass
"""
    run = sandbox.run(code, limits=QUICK)
    return run.status == "timeout" and 1 <= run.stdout.count("x") <= 16


@attack("thread bomb")
def _(sandbox: Sandbox, outside: Path) -> bool:
    code = """
import threading, time
threads = []
try:
    for _ in range(200):
        threads.append(threading.Thread(target=time.sleep, args=(9,), daemon=True))
        threads[-1].start()
except RuntimeError:
    print(len(threads) <= 16)
"""
    return says(sandbox.run(code, limits=Limits(memory_mb=4000)), "True")


@attack("memory of a process")
def _(sandbox: Sandbox, outside: Path) -> bool:
    run = sandbox.run("x = bytearray(2 << 30)\nprint(len(x))")
    return run.status == "error" and "MemoryError" in run.stderr


@attack("memory in files without a name (memfd)")
def _(sandbox: Sandbox, outside: Path) -> bool:
    code = """
import os
try:
    for _ in range(20):
        os.write(os.memfd_create("x"), bytes(10 << 20))
    print("made")
except OSError:
    print("held")
"""
    return says(sandbox.run(code), "held")


@attack("memory of all processes together")
def _(sandbox: Sandbox, outside: Path) -> bool:
    code = """
import os, time
reader, writer = os.pipe()
for _ in range(4):
    if not os.fork():
        try: x = bytearray(80 << 20)
        finally: os.write(writer, b"x" * (len(x) > 0))
        time.sleep(9)
os.close(writer)
print(sum(len(os.read(reader, 1)) for _ in range(4)))
"""
    return not says(sandbox.run(code, limits=Limits(memory_mb=128)), "4")


@attack("disk, one file")
def _(sandbox: Sandbox, outside: Path) -> bool:
    code = """
try:
    with open("x", "wb") as file:
        for _ in range(40): file.write(bytes(1 << 20))
    print("written")
except OSError as error:
    print(error.errno)
"""
    return says(sandbox.run(code), "27")


@attack("disk, many files")
def _(sandbox: Sandbox, outside: Path) -> bool:
    code = """
try:
    for k in range(20):
        with open(f"{k}", "wb") as file: file.write(bytes(8 << 20))
    print("written")
except OSError as error:
    print(error.errno)
"""
    return says(sandbox.run(code), "28")


@attack("a million empty files")
def _(sandbox: Sandbox, outside: Path) -> bool:
    code = """
try:
    for k in range(5000): open(f"{k}", "w").close()
    print("written")
except OSError as error:
    print(error.errno)
"""
    return sandbox.run(code).stdout == "28\n"


@attack("open files")
def _(sandbox: Sandbox, outside: Path) -> bool:
    code = """
files = []
try:
    while True: files.append(open("/dev/null"))
except OSError as error:
    print(error.errno, len(files) <= 64)
"""
    return says(sandbox.run(code), "24 True")


@attack("endless printing")
def _(sandbox: Sandbox, outside: Path) -> bool:
    before = resident()
    run = sandbox.run('while True: print("0123456789" * 1000)', limits=QUICK)
    return run.status == "timeout" and len(run.stdout) < 100_100 and resident() - before < 50 << 20


@attack("printing 300 MB at once")
def _(sandbox: Sandbox, outside: Path) -> bool:
    before = resident()
    run = sandbox.run('import os\nfor _ in range(30): os.write(2, b"a" * 10_000_000)', limits=Limits(seconds=9))
    return len(run.stderr) < 100_100 and "[cut at" in run.stderr and resident() - before < 50 << 20


@attack("waiting for ever")
def _(sandbox: Sandbox, outside: Path) -> bool:
    run = sandbox.run("import time\ntime.sleep(60)", limits=Limits(seconds=0.3))
    return run.status == "timeout" and run.seconds < 2


@attack("ignoring every signal")
def _(sandbox: Sandbox, outside: Path) -> bool:
    code = """
import signal
for number in signal.valid_signals() - {9, 19}:
    try: signal.signal(number, signal.SIG_IGN)
    except OSError: pass
while True: pass
"""
    run = sandbox.run(code, limits=Limits(seconds=0.3))
    return run.status == "timeout" and run.seconds < 2


@attack("processor time")
def _(sandbox: Sandbox, outside: Path) -> bool:
    run = sandbox.run("while True: pass", limits=Limits(seconds=20, cpu_seconds=1))
    return run.status == "cpu" and run.seconds < 15


@attack("a child that keeps stdout open")
def _(sandbox: Sandbox, outside: Path) -> bool:
    code = 'import os, time\nif not os.fork():\n    time.sleep(9)\nelse:\n    print("done")'
    run = sandbox.run(code)
    return says(run, "done") and run.seconds < 3


@attack("a daemon that outlives the program")
def _(sandbox: Sandbox, outside: Path) -> bool:
    before = usual(sandbox)
    code = """
import os, time
if not os.fork():
    os.setsid()
    for _ in range(3):
        if os.fork(): os._exit(0)
    os.close(0); os.close(1); os.close(2)
    while True: time.sleep(0.01)
os.wait()
time.sleep(0.2)
print("done")
"""
    return says(sandbox.run(code), "done") and are_soon_at_most(before)


@attack("killing all that it can")
def _(sandbox: Sandbox, outside: Path) -> bool:
    before = waiting(sandbox)
    code = """
import os, signal
for pid in (os.getppid(), 0, -1, -os.getpgid(0), 1):
    for number in (signal.SIGCHLD, signal.SIGSTOP, signal.SIGKILL) if pid > 1 else (signal.SIGKILL,):
        try: os.kill(pid, number)
        except OSError: pass
"""
    # In the fallback the caller shares the user of the program: only the worker may be named there.
    if sandbox.isolation == "none":
        code = code.replace("(os.getppid(), 0, -1, -os.getpgid(0), 1)", "(os.getppid(),)")
    sandbox.run(code, limits=QUICK)
    # Of all, only its own cell is another now.
    return are_soon_at_most(len(before)) and len(before - waiting(sandbox)) == 1


@attack("reading the memory of the worker")
def _(sandbox: Sandbox, outside: Path) -> bool:
    code = """
import ctypes, os
libc = ctypes.CDLL(None, use_errno=True)
parent = os.getppid() or 1
held = libc.ptrace(16, parent, 0, 0) < 0
for path in (f"/proc/{parent}/mem", f"/proc/{parent}/environ"):
    try: held = held and not open(path, "rb").read(1) and False
    except OSError: pass
libc.process_vm_readv.restype = ctypes.c_ssize_t
print(held and libc.process_vm_readv(parent, None, 0, None, 0, 0) < 0)
"""
    return says(sandbox.run(code), "True")


EARLIER = """
import gc, sys
text, data = "MARK" * 3, b"MARK"
def keep(mark="MARK"): return mark
sys.kept = [keep, {"MARK": sys.stdin.read()}]
gc.callbacks.append(lambda phase, info, mark="MARK": None)
print("MARK")
"""
"""A program to be found by later ones."""
SEARCH = """
own = bytearray(byte - 1 for byte in OWN)
shift = bytes((byte + 1) % 256 for byte in range(256))
seen = set()
def look(data):
    # What is looked for is held nowhere, only what it is when each byte is one more.
    data = data.translate(shift)
    seen.update(name for name, what in (("own", OWN), ("earlier", WHAT)) if what in data)
"""


def find_earlier(sandbox: Sandbox, search: str) -> bool:
    """Whether ``search`` finds nothing of earlier programs of the same worker; it must find what it holds itself."""
    mark = f"mark-of-{secrets.token_hex(8)}"
    own, what = (bytes(byte + 1 for byte in text.encode()) for text in (secrets.token_hex(8), mark))
    code = SEARCH.replace("OWN", repr(own)).replace("WHAT", repr(what)) + search + "print(*sorted(seen))"
    earlier = EARLIER.replace("MARK", mark)
    shown = set()
    for _ in range(3):  # two keepers make the cells in turn
        assert mark in sandbox.run(earlier, stdin=mark, files={mark: mark}).stdout
        run = sandbox.run(code, limits=Limits(seconds=30, cpu_seconds=20))
        assert run.status == "ok" and "own" in run.stdout, run
        shown.add(run.stdout)
    return shown == {"own\n"}


@attack("objects of an earlier program, by frames and gc")
def _(sandbox: Sandbox, outside: Path) -> bool:
    search = """
import gc, sys
gc.unfreeze()
frame, queue = sys._getframe(), [gc.callbacks]
while frame:
    queue += [frame, frame.f_locals, frame.f_globals, frame.f_builtins, frame.f_code]
    frame = frame.f_back
queue += gc.get_objects()
known = set()
while queue:
    thing = queue.pop()
    if id(thing) in known: continue
    known.add(id(thing))
    if isinstance(thing, str): look(thing.encode("utf-8", "surrogatepass"))
    elif isinstance(thing, (bytes, bytearray)): look(thing)
    else: queue += gc.get_referents(thing)
"""
    return find_earlier(sandbox, search)


@attack("traces of an earlier program in its own memory")
def _(sandbox: Sandbox, outside: Path) -> bool:
    search = """
import ctypes, os
libc = ctypes.CDLL(None)
libc.sbrk.restype = ctypes.c_void_p
environ = ctypes.c_void_p.in_dll(libc, "environ")
known = id(own), libc.sbrk(0), environ.value, ctypes.addressof(environ), ctypes.cast(libc.free, ctypes.c_void_p).value
reader, writer = os.pipe()
size, tail = 4096, b""
pages = {address // size + k for address in known for k in range(-8192, 8192)}
for page in sorted(pages):
    if libc.write(writer, ctypes.c_void_p(page * size), size) == size:  # else nothing is there
        data = os.read(reader, size)
        look(tail + data)
        tail = data[-64:]
    else:
        tail = b""
"""
    return find_earlier(sandbox, search)


@attack("changing the limits of the worker")
def _(sandbox: Sandbox, outside: Path) -> bool:
    code = """
import os, resource
try:
    parent = os.getppid()
    if not parent: raise ProcessLookupError  # it has no name for it
    resource.prlimit(parent, resource.RLIMIT_CORE, (0, 0))
    print("changed")
except (ProcessLookupError, PermissionError):
    print("held")
"""
    return says(sandbox.run(code), "held")


@attack("inherited open files")
def _(sandbox: Sandbox, outside: Path) -> bool:
    code = """
import os
held = []
for fd in range(3, 1024):
    try: os.fstat(fd); held.append(fd)
    except OSError: pass
print(held)
"""
    return says(sandbox.run(code), "[]")


@attack("network")
def _(sandbox: Sandbox, outside: Path) -> bool:
    code = """
import socket, sys
reached = 0
for kind in (socket.SOCK_STREAM, socket.SOCK_DGRAM):
    for family, address in ((socket.AF_INET, ("127.0.0.1", PORT)), (40, (2, 1)), (16, (0, 0)), (38, ("hash", "md5"))):
        try:
            socket.socket(family, kind)
            reached += 1
        except OSError: pass
print(reached)
"""
    with socket.create_server(("127.0.0.1", 0)) as server:
        return says(sandbox.run(code.replace("PORT", str(server.getsockname()[1]))), "0")


@attack("abstract sockets of others")
def _(sandbox: Sandbox, outside: Path) -> bool:
    code = """
import socket
try:
    socket.socket(socket.AF_UNIX).connect("\\0NAME")
    print("reached")
except OSError:
    print("held")
"""
    name = f"tetrathlon-{os.getpid()}"
    with socket.socket(socket.AF_UNIX) as server:
        server.bind("\0" + name)
        server.listen()
        return says(sandbox.run(code.replace("NAME", name)), "held")


READ = "try: print(open({!r}).read())\nexcept OSError: print('held')"


@attack("reading files that anyone may read")
def _(sandbox: Sandbox, outside: Path) -> bool:
    return says(sandbox.run(READ.format(str(outside / "open.txt"))), "held")


@attack("reading files of the caller alone")
def _(sandbox: Sandbox, outside: Path) -> bool:
    return says(sandbox.run(READ.format(str(outside / "private.txt"))), "held")


@attack("reading the environment of the caller")
def _(sandbox: Sandbox, outside: Path) -> bool:
    code = """
import glob, os
seen = repr(dict(os.environ))
for path in glob.glob("/proc/[0-9]*/environ"):
    try: seen += open(path, "rb").read().decode("latin1")
    except OSError: pass
print("SECRET" in seen)
"""
    return says(sandbox.run(code.replace("SECRET", SECRET)), "False")


@attack("reading the command line of the caller")
def _(sandbox: Sandbox, outside: Path) -> bool:
    code = 'import os\nprint(os.path.exists("/proc/PID/cmdline"))'.replace("PID", str(os.getpid()))
    return says(sandbox.run(code), "False")


@attack("writing outside of its folder")
def _(sandbox: Sandbox, outside: Path) -> bool:
    code = """
import os
for path in PATHS:
    try: open(path, "w").write("x")
    except OSError: pass
"""
    spoiled = [Path(tempfile.gettempdir(), f"spoiled-{os.getpid()}"), outside / "anyone" / "x"]
    assert sandbox.run(code.replace("PATHS", repr(list(map(str, spoiled))))).status == "ok"
    held = not any(path.exists() for path in spoiled)
    for path in spoiled:
        path.unlink(missing_ok=True)
    return held


@attack("leaving files for the next run")
def _(sandbox: Sandbox, outside: Path) -> bool:
    name = f"left-{os.getpid()}"
    code = """
import os
folders = {".", "..", "/", "/tmp", "/dev/shm", "/dev", "/worker", "/etc", "/var/tmp", os.path.expanduser("~")}
found = []
for folder in {os.path.realpath(folder): folder for folder in folders}.values():
    path = os.path.join(folder, "NAME")
    found.append(os.path.exists(path))
    try: open(path, "w").close()
    except OSError: pass
print(any(found))
""".replace("NAME", name)
    assert says(sandbox.run(code), "False")
    held = [says(sandbox.run(code), "False") for _ in range(2)] == [True] * 2  # two keepers make the cells in turn
    for folder in ("/", "/tmp", "/dev/shm", "/dev", "/etc", "/var/tmp"):
        with contextlib.suppress(OSError):
            Path(folder, name).unlink()
    return held


@attack("leaving shared memory, queues and keys for the next run")
def _(sandbox: Sandbox, outside: Path) -> bool:
    code = """
import ctypes
libc = ctypes.CDLL(None)
made = [libc.shmget(4242, 4096, 0o1666), libc.msgget(4242, 0o1666), libc.semget(4242, 1, 0o1666)]
made.append(libc.mq_open(b"/left", 66, 0o666, None))
made.append(libc.syscall(248, b"user", b"left", b"x", 1, -4))
print(max(made))
"""
    return says(sandbox.run(code), "-1")


@attack("folders too deep or locked to be removed")
def _(sandbox: Sandbox, outside: Path) -> bool:
    code = """
import os
for _ in range(300):
    os.mkdir("d" * 200)
    os.chdir("d" * 200)
os.mkdir("locked")
open("locked/x", "w").close()
os.chmod("locked", 0)
print("made")
"""
    assert says(sandbox.run(code), "made")
    return says(sandbox.run("import os\nprint(os.listdir())"), "[]")


@attack("new namespaces and mounts")
def _(sandbox: Sandbox, outside: Path) -> bool:
    code = """
import ctypes
libc = ctypes.CDLL(None)
made = [libc.unshare(flag) for flag in (0x10000000, 0x20000, 0x10020000, 0x20000000, 0x40000000)]
made += [libc.mount(b"tmpfs", b"/tmp", b"tmpfs", 0, None), libc.umount2(b"/box", 2), libc.chroot(b".")]
made.append(libc.mount(None, b"/", None, 32 | 4096, None))
print(max(made))
"""
    return says(sandbox.run(code), "-1")


@attack("becoming another user")
def _(sandbox: Sandbox, outside: Path) -> bool:
    code = """
import os
try: os.setuid(0 if os.getuid() else 12345); print("became")
except OSError: print("held")
"""
    return says(sandbox.run(code), "held")


def judge(sandbox: Sandbox, name: str, outside: Path) -> bool:
    """Run an attack, and see that the sandbox works as before after it."""
    before = usual(sandbox)
    try:
        held = ATTACKS[name](sandbox, outside)
    except SandboxError:  # it killed its worker, and the one after
        held = False
    start = time.monotonic()
    run = sandbox.run("import os\nprint(1 + 1, os.listdir())")
    assert run.status == "ok" and run.stdout == "2 []\n" and time.monotonic() - start < 3, run
    assert are_soon_at_most(before), f"{name}: a process is left"
    return held


def prepare(folder: Path) -> Path:
    """Put down what the attacks look for."""
    os.environ["TETRATHLON_SECRET"] = SECRET
    folder.chmod(0o755)
    (folder / "open.txt").write_text(SECRET)
    (folder / "private.txt").write_text(SECRET)
    (folder / "private.txt").chmod(0o600)
    (folder / "anyone").mkdir()
    (folder / "anyone").chmod(0o777)
    return folder


def main() -> None:
    warnings.simplefilter("ignore")
    results: dict[str, bool | str] = {}
    for isolation in ("bwrap", "none"):
        with tempfile.TemporaryDirectory() as folder, Sandbox(isolation=isolation) as sandbox:
            outside = prepare(Path(folder))
            for name in ATTACKS:
                try:
                    results[f"{isolation}: {name}"] = judge(sandbox, name, outside)
                except AssertionError as error:
                    results[f"{isolation}: {name}"] = str(error)
    print(json.dumps(results))


if __name__ == "__main__":
    main()
