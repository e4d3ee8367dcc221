import os
import re
import signal
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path

import pytest

from tests.envs.isolations import need_bubblewrap
from tetrathlon.envs import sandbox_link
from tetrathlon.envs.sandbox import Limits, Run, Sandbox, SandboxEnded, SandboxError, SandboxPool, shared

ECHO = "out = open(4, 'w')\nfor line in open(3):\n    print(line.strip() * 2, file=out, flush=True)\n"


@pytest.fixture(scope="module", params=["bwrap", "none"])
def sandbox(request):
    if request.param == "bwrap":
        need_bubblewrap()
    with Sandbox(isolation=request.param) as sandbox:
        yield sandbox


@pytest.mark.parametrize(
    ("code", "exit_code", "stdout", "stderr"),
    [
        ("print(1 + 1)", 0, "2\n", ""),
        ("exit(3)", 3, "", ""),
        ("import sys; sys.exit('no')", 1, "", "no\n"),
        ("import sys; sys.exit(0)", 0, "", ""),
        ("import os; print('lost'); os._exit(0)", 0, "", ""),
        ("import ctypes; ctypes.string_at(0)", -11, "", ""),
        ("import sys; sys.stdout.close()", 0, "", ""),
        ("import os; os.close(1); os.close(2)", 0, "", ""),
        ("import os; os.setsid", 0, "", ""),
        ("import atexit; atexit.register(print, 'end')", 0, "end\n", ""),
        ("import threading as t; t.Timer(0.05, lambda: print('late')).start(); print('main')", 0, "main\nlate\n", ""),
        ("import threading, time; threading.Thread(target=time.sleep, args=(9,), daemon=True).start()", 0, "", ""),
        ("import pickle\nclass A: pass\nprint(type(pickle.loads(pickle.dumps(A()))).__module__)", 0, "__main__\n", ""),
        ("import multiprocessing\nwith multiprocessing.Pool(2) as p: print(p.map(abs, [-1, -2]))", 0, "[1, 2]\n", ""),
        ("import sys, os; os.execv(sys.executable, [sys.executable, '-c', 'print(9)'])", 0, "9\n", ""),
        ("print('\\udc80\\N{SNOWMAN}')", 0, "�☃\n", ""),
        ("import os; print(sorted(os.environ) == ['HOME', 'LANG', 'PATH'], os.listdir())", 0, "False []\n", ""),
    ],
)
def test_a_program_runs_as_a_script_does(sandbox, code, exit_code, stdout, stderr):
    run = sandbox.run(code)
    assert (run.exit_code, run.stdout, run.stderr) == (exit_code, stdout, stderr)
    assert run.status == ("ok" if exit_code == 0 else "error")


@pytest.mark.parametrize(
    ("code", "last"),
    [
        ("x = 1\n1 / 0", "ZeroDivisionError: division by zero"),
        ("def f(:", "SyntaxError: invalid syntax"),
        ("\0", "SyntaxError: source code string cannot contain null bytes"),
        ("def f(): f()\nf()", "RecursionError: maximum recursion depth exceeded"),
        ("raise KeyboardInterrupt", "KeyboardInterrupt"),
        ("import numpy", "ModuleNotFoundError: No module named 'numpy'"),
        ("import tetrathlon", "ModuleNotFoundError: No module named 'tetrathlon'"),
        ("input('? ')", "EOFError: EOF when reading a line"),  # s08
        ("(" * 300 + ")" * 300, "SyntaxError: too many nested parentheses"),
    ],
)
def test_what_a_program_raises_is_told(sandbox, code, last):
    run = sandbox.run(code)
    assert (run.status, run.exit_code) == ("error", 1)
    assert run.stderr.splitlines()[-1].replace("ValueError: s", "SyntaxError: s") == last
    assert "worker" not in run.stderr


def test_a_traceback_shows_the_line_of_the_program(sandbox):
    lines = sandbox.run("x = 1\nassert x == 2, 'no'").stderr.splitlines()
    assert lines[1:3] == ['  File "main.py", line 2, in <module>', "    assert x == 2, 'no'"]


def test_stdin_is_given_and_ends(sandbox):
    run = sandbox.run(
        "import sys\nprint(input(), len(sys.stdin.read()), repr(input and sys.stdin.read()))", stdin="a\nbc"
    )
    assert run.stdout == "a 2 ''\n"
    big = "x" * 3_000_000
    assert sandbox.run("print(len(input()))", stdin=big).stdout == "3000000\n"
    assert sandbox.run("import sys; sys.stdin.read(); print('eof')").stdout == "eof\n"  # s08


def test_files_are_put_down_and_gone_at_the_next_run(sandbox):
    files = {"a/b.txt": "text", "data": b"\0\xff", "lib.py": "X = 3"}
    run = sandbox.run("import lib\nprint(open('a/b.txt').read(), open('data', 'rb').read(), lib.X)", files=files)
    assert run.stdout == "text b'\\x00\\xff' 3\n"
    assert sandbox.run("import os\nprint(os.listdir('.'))").stdout == "[]\n"


@pytest.mark.parametrize(
    "name", ["/etc/x", "../x", "a/../../x", "a//b", "", ".", "a/.", "a\0b", "x" * 256, "/".join("a" * 40)]
)
def test_names_that_lead_elsewhere_are_refused(sandbox, name):
    with pytest.raises(ValueError, match="relative path"):
        sandbox.run("", files={name: "x"})


def test_files_that_do_not_fit_are_refused(sandbox):
    with pytest.raises(ValueError, match="half of disk_mb=1, got 600000 bytes"):
        sandbox.run("", files={"a": bytes(600_000)}, limits=Limits(disk_mb=1))
    with pytest.raises(ValueError, match="'a' is"):
        sandbox.run("", files={"a": "", "a/b": ""})
    with pytest.raises(TypeError, match="bytes"):
        sandbox.run(b"1")


@pytest.mark.parametrize(
    ("name", "value"),
    [("seconds", 0), ("seconds", float("nan")), ("seconds", 1e12), ("cpu_seconds", float("inf")),
     ("cpu_seconds", 1e300), ("cpu_seconds", 10**400), ("memory_mb", 3), ("processes", 0), ("open_files", 2.5),
     ("output_bytes", True)],
)  # fmt: skip
def test_limits_are_checked(name, value):
    with pytest.raises(ValueError, match=f"{name} must be"):
        Limits(**{name: value})


def test_the_longest_limits_work(sandbox):
    limits = Limits(seconds=1e6, cpu_seconds=1e6)
    assert sandbox.run("import time; time.sleep(0.1); print(1)", limits=limits).stdout == "1\n"
    with sandbox.open(ECHO, limits=limits) as session:
        assert session.request("a", seconds=1e6) == "aa"


def test_output_is_cut_with_a_marker(sandbox):
    run = sandbox.run("print('é' * 100)", limits=Limits(output_bytes=11))
    assert run.stdout == "é" * 5 + "�\n[cut at 11 bytes]" and run.status == "ok"
    assert sandbox.run("print('a' * 10)", limits=Limits(output_bytes=11)).stdout == "a" * 10 + "\n"


# s01: background children.
def test_a_child_in_the_background_neither_delays_nor_outlives_a_run(sandbox):
    start = "import subprocess, sys, time\n"
    run = sandbox.run(start + "subprocess.Popen([sys.executable, '-c', 'import time; time.sleep(5)']); print('done')")
    assert run.stdout == "done\n" and run.status == "ok" and run.seconds < 2
    late = "import time; time.sleep(1); open('late.txt', 'w')"
    code = f"subprocess.Popen([sys.executable, '-c', {late!r}]); time.sleep(30)"
    run = sandbox.run(start + code, limits=Limits(seconds=0.5))
    assert run.status == "timeout" and run.exit_code is None and 0.5 <= run.seconds < 2


# s06: one long step in C.
def test_one_long_step_in_c_is_stopped_and_the_next_run_is_quick(sandbox):
    run = sandbox.run("x = 7 ** (2 * 10**7); print(len(bin(x)))", limits=Limits(seconds=0.5))
    assert run.status == "timeout" and run.seconds < 2
    start = time.monotonic()
    assert sandbox.run("print(2)").stdout == "2\n"
    assert time.monotonic() - start < 1


# s07: a huge allocation, a huge print.
def test_a_huge_print_is_an_error_or_cut(sandbox):
    run = sandbox.run("print('a' * 300_000_000)", limits=Limits(seconds=9))
    assert "MemoryError" in run.stderr or run.stdout.endswith("[cut at 100000 bytes]")
    assert len(run.stdout) < 100_100
    assert "MemoryError" in sandbox.run("x = bytearray(64 * 2**30)").stderr


def test_a_cell_made_ahead_keeps_the_limits_of_its_call(sandbox):
    code = """
import os, resource
names = ("AS", "CPU", "FSIZE", "NOFILE", "CORE", "MEMLOCK")
print(*(resource.getrlimit(getattr(resource, "RLIMIT_" + name))[1] for name in names))
disk = os.statvfs(".")
print(disk.f_blocks * disk.f_frsize >> 20)
"""
    for k in (1, 2, 3, 1):
        limits = Limits(memory_mb=100 * k, cpu_seconds=k, file_mb=k, disk_mb=32 * k, open_files=16 * k)
        used, disk = sandbox.run(code, limits=limits).stdout.splitlines()
        assert used == f"{100 * k << 20} {k} {k << 20} {16 * k} 0 0"
        assert disk == str(32 * k) or sandbox.isolation == "none"
        run = sandbox.run("print('a' * 50)", limits=Limits(output_bytes=10 * k))
        assert run.stdout == "a" * 10 * k + f"\n[cut at {10 * k} bytes]"


def test_nothing_in_a_cell_made_ahead_is_stale(sandbox):
    code = (
        "import os, random, time, uuid\nprint(time.time(), random.random(), uuid.uuid4(), os.urandom(8), os.getpid())"
    )
    seen = []
    for _ in range(4):
        sandbox.run("")
        time.sleep(0.4)
        start = time.time()
        run = sandbox.run(code)
        now, *rest = run.stdout.split(" ", 3)
        assert start <= float(now) <= time.time()
        assert run.seconds < 0.4 or time.time() - start > 0.4  # waiting does not count
        seen.append(rest)
    assert all(len(set(column)) == 4 for column in zip(*seen, strict=True))


def test_what_a_program_does_to_its_files_is_not_seen_by_the_next(sandbox):
    code = """
import fcntl, os
flags = [fcntl.fcntl(fd, fcntl.F_GETFL) for fd in range(3)]
print([flag & (os.O_NONBLOCK | os.O_APPEND) for flag in flags], os.getcwd() == os.path.expanduser("~"))
for fd in range(3): fcntl.fcntl(fd, fcntl.F_SETFL, flags[fd] | os.O_NONBLOCK | os.O_APPEND)
os.chmod(".", 0o700); os.utime(".", (1, 1)); os.umask(0o77); os.nice(5)
"""
    looks = [sandbox.run(code + "print(os.nice(0))").stdout for _ in range(4)]
    assert looks == [f"[0, 0, 0] {sandbox.isolation == 'bwrap'}\n{looks[0].split()[-1]}\n"] * 4


def test_an_idle_worker_is_small(sandbox):
    sandbox.run("x = bytearray(50 << 20)", stdin="y" * (20 << 20))
    time.sleep(0.2)
    pages = [int(Path(f"/proc/{pid}/statm").read_text().split()[1]) for pid in tree_of(sandbox._link._process.pid)]
    assert sum(pages) * os.sysconf("SC_PAGESIZE") < 100 << 20  # with what they share counted for each


def test_runs_repeat_and_share_nothing(sandbox):
    code = "import sys, builtins\nprint(hash('a'), {'x', 'y'}, hasattr(builtins, 'mark'))\nbuiltins.mark = sys.path = 1"
    first = sandbox.run(code).stdout
    with Sandbox(isolation=sandbox.isolation) as other:
        assert first == sandbox.run(code).stdout == other.run(code).stdout
    assert first.endswith("False\n")


def test_a_session_answers_line_by_line(sandbox):
    with sandbox.open(ECHO) as session:
        for text in ("a", "", "é" * 20_000):
            assert session.request(text) == text * 2
        with pytest.raises(ValueError, match="one line"):
            session.request("a\nb")
    run = session.close()
    assert (run.status, run.exit_code) == ("closed", None)
    with pytest.raises(SandboxEnded):
        session.request("a")
    assert sandbox.run("print(2)").stdout == "2\n"


@pytest.mark.parametrize(
    ("code", "status", "stdout"),
    [
        ("print('bye')", "ok", "bye\n"),
        ("1 / 0", "error", ""),
        ("import os\nopen(3).readline()\nos._exit(0)", "ok", ""),
        ("import time\ntime.sleep(60)", "timeout", ""),
        ("import os\nos.close(3)\nos.close(4)\nwhile True: pass", "timeout", ""),
        ("import os\nwhile True: os.write(4, b'a' * 1000)", "reply", ""),
        ("while True: print('flood')", "timeout", None),
    ],
)
def test_a_session_that_ends_tells_how(sandbox, code, status, stdout):
    with sandbox.open(code, limits=Limits(seconds=0.4, output_bytes=5000)) as session:
        with pytest.raises(SandboxEnded) as ended:
            session.request("a")
        run = ended.value.run
        assert run.status == status and session.close() is run
        assert run.stdout == stdout if stdout is not None else "[cut at" in run.stdout
    assert sandbox.run("print(2)").stdout == "2\n"


def test_a_session_takes_what_was_written_before_the_end(sandbox):
    with sandbox.open("import os\nopen(3).readline()\nos.write(4, b'last\\n')") as session:
        assert session.request("a") == "last"
        with pytest.raises(SandboxEnded) as ended:
            session.request("b")
        assert ended.value.run.status == "ok"


def test_a_session_keeps_its_own_deadline(sandbox):
    with sandbox.open(ECHO + "import time", limits=Limits(seconds=60)) as session:
        assert session.request("a", seconds=5) == "aa"
    with sandbox.open("import time; time.sleep(60)", limits=Limits(seconds=60)) as session:
        with pytest.raises(SandboxEnded) as ended:
            session.request("a", seconds=0.2)
        assert ended.value.run.status == "timeout" and ended.value.run.seconds < 5


@pytest.mark.parametrize("seconds", [float("nan"), float("inf"), 1e12, 10**400, 0, -1.0, True, "1"])
def test_a_time_that_cannot_be_counted_is_refused_and_the_session_goes_on(sandbox, seconds):
    with sandbox.open(ECHO) as session:
        with pytest.raises(ValueError, match=f"up to 1000000 or None, got {seconds!r}"):
            session.request("a", seconds=seconds)
        assert session.request("a") == "aa"


def test_to_close_a_sandbox_does_not_wait_for_its_session(sandbox):
    other = Sandbox(isolation=sandbox.isolation)
    start = time.monotonic()
    with pytest.raises(RuntimeError, match="mine"), other:
        session = other.open("import time; time.sleep(99)")
        pids = tree_of(workers_of(other)[0])
        raise RuntimeError("mine")
    assert time.monotonic() - start < 5 and not any(Path(f"/proc/{pid}").exists() for pid in pids)
    for call in (lambda: session.request("a"), session.close):
        with pytest.raises(SandboxError, match="its sandbox was closed"):
            call()
    with other, other.open(ECHO) as new:
        with pytest.raises(SandboxError, match="closed"):  # the lost session ends nobody's turn
            session.request("a")
        assert other._is_busy and new.request("a") == "aa"


def test_to_close_a_sandbox_ends_a_request_in_another_thread_and_waits_for_a_run():
    errors: list[Exception] = []
    with SandboxPool(1) as pool:
        session = pool.open("import time; time.sleep(99)")

        def ask() -> None:
            try:
                session.request("a", seconds=99)
            except SandboxError as error:
                errors.append(error)

        thread = threading.Thread(target=ask)
        thread.start()
        time.sleep(0.3)
        pool.close()
        thread.join(5)
        assert len(errors) == 1 and len(pool._idle) == 1
        runs: list[Run] = []
        thread = threading.Thread(target=lambda: runs.append(pool.run("import time; time.sleep(1); print(2)")))
        thread.start()
        time.sleep(0.3)
        pool.close()
        thread.join(5)
        assert runs[0].stdout == "2\n"


@pytest.mark.parametrize("pool", ["sandbox.shared()", "sandbox.pool_of('testers')"])
def test_a_script_ends_with_an_open_session_and_a_run_in_a_thread(pool):
    need_bubblewrap()
    code = f"""
import threading, time
from tetrathlon.envs import sandbox
pool = {pool}
if len(pool._sandboxes) > 1:
    limits = sandbox.Limits(seconds=99)
    threading.Thread(target=pool.run, args=("while True: pass",), kwargs={{"limits": limits}}, daemon=True).start()
session = pool.open("for line in open(3): pass")
time.sleep(0.5)
print(*(one._link._process.pid for one in pool._sandboxes if one._link))
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60)
    assert done.returncode == 0 and done.stderr == ""
    assert done.stdout.split() and all(is_gone(int(pid)) for pid in done.stdout.split())


def test_who_waits_for_an_open_session_is_told(monkeypatch):
    monkeypatch.setattr("tetrathlon.envs.sandbox._PATIENCE_SECONDS", 0.3)
    told = "each of 1 has been in the same open session for 0.3 seconds"
    with Sandbox() as sandbox, sandbox.open(ECHO) as session:
        with pytest.raises(SandboxError, match=told):
            sandbox.run("")
        assert sandbox.isolation in ("bwrap", "none")
        assert session.request("a") == "aa"
    with SandboxPool(1) as pool:
        with pool.open(ECHO) as session:
            with pytest.raises(SandboxError, match=told):
                pool.open(ECHO)
            assert session.request("a") == "aa"
        thread = threading.Thread(target=pool.run, args=("import time; time.sleep(1)",))
        thread.start()
        time.sleep(0.1)
        assert pool.run("print(1)").stdout == "1\n"  # a run comes to its end
        thread.join()


def test_the_kernel_short_of_memory_takes_a_program_before_its_host(sandbox):
    own = int(Path("/proc/self/oom_score_adj").read_text())
    code = "import os\nif not os.fork():\n    while True: pass\nopen(4, 'w').write('a\\n')\nopen(3).read()"
    with sandbox.open(code) as session:
        assert session.request("a") == "a"
        scores = [Path(f"/proc/{pid}/oom_score_adj").read_text() for pid in tree_of(sandbox._link._process.pid)]
    assert len(scores) >= 4 and set(map(int, scores)) == {min(own + 500, 1000)}


def workers_of(sandbox: Sandbox) -> list[int]:
    process = sandbox._link._process.pid  # type: ignore[union-attr]
    listed = subprocess.run(["ps", "-o", "pid=", "--ppid", str(process)], capture_output=True, text=True).stdout
    return [process, *map(int, listed.split())]


def test_a_lost_worker_is_replaced_and_two_are_an_error_of_the_sandbox(monkeypatch):
    with Sandbox() as sandbox:
        assert sandbox.run("print(1)").stdout == "1\n"
        os.kill(workers_of(sandbox)[-1], signal.SIGKILL)
        assert sandbox.run("print(2)").stdout == "2\n"
        session = sandbox.open(ECHO)
        os.kill(workers_of(sandbox)[-1], signal.SIGKILL)
        with pytest.raises(SandboxError, match="lost"):
            session.request("a")
        with pytest.raises(SandboxError, match="lost"):
            session.request("a")
        assert sandbox.run("print(3)").stdout == "3\n"
        monkeypatch.setattr(sandbox_link.Link, "exchange", lambda *_: (_ for _ in ()).throw(OSError("gone")))
        with pytest.raises(SandboxError, match="two workers in turn failed: gone"):
            sandbox.run("print(4)")


def tree_of(pid: int) -> list[int]:
    """A process and all its descendants."""
    listed = subprocess.run(["ps", "-o", "pid=", "--ppid", str(pid)], capture_output=True, text=True).stdout
    return [pid, *(one for child in listed.split() for one in tree_of(int(child)))]


def is_gone(pid: int) -> bool:
    """Whether a process ends soon; it may stay a zombie where nobody reaps orphans."""
    for _ in range(250):
        try:
            if Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] == "Z":
                return True
        except OSError:
            return True
        time.sleep(0.02)
    return False


def test_a_killed_bubblewrap_takes_its_worker_along():
    need_bubblewrap()
    with Sandbox(isolation="bwrap") as sandbox:
        sandbox.run("")
        outer, worker = workers_of(sandbox)
        os.kill(outer, signal.SIGKILL)
        assert is_gone(worker)


def test_a_killed_worker_takes_its_cells_along():
    need_bubblewrap()
    with Sandbox(isolation="bwrap") as sandbox:
        sandbox.run("")
        pids = tree_of(workers_of(sandbox)[-1])
        assert len(pids) >= 3
        os.kill(pids[0], signal.SIGKILL)
        assert all(map(is_gone, pids))


def test_a_host_that_dies_ends_its_program():
    need_bubblewrap()
    code = (
        "import os, sys, threading, time\nfrom tetrathlon.envs.sandbox import Sandbox\n"
        "sandbox = Sandbox(isolation=sys.argv[1])\nsandbox.run('')\nprint(sandbox._link._process.pid, flush=True)\n"
        "threading.Thread(target=sandbox.run, args=('while True: pass',), daemon=True).start()\n"
        "time.sleep(0.5)\nos.system('ps -eo pid,ppid > ' + sys.argv[2])\nos.kill(os.getpid(), 9)\n"
    )
    for isolation in ("bwrap", "none"):
        with tempfile.NamedTemporaryFile("r") as listed:
            died = subprocess.run([sys.executable, "-c", code, isolation, listed.name], capture_output=True, text=True)
            parents = {int(line.split()[0]): int(line.split()[1]) for line in listed.read().splitlines()[1:]}
        family = {int(died.stdout)}
        while more := {pid for pid, parent in parents.items() if parent in family} - family:
            family |= more
        assert len(family) >= 3
        start = time.monotonic()
        assert all(map(is_gone, family)) and time.monotonic() - start < 3


def test_close_ends_the_worker_and_a_later_run_starts_another():
    need_bubblewrap()
    for isolation in ("bwrap", "none"):
        sandbox = Sandbox(isolation=isolation)
        assert sandbox.run("print(1)").stdout == "1\n"
        time.sleep(0.1)  # the next cells are made
        link = sandbox._link
        assert link is not None
        pids, box = tree_of(link._process.pid), link._launch.box
        assert len(pids) == (6 if isolation == "bwrap" else 3)
        sandbox.close()
        sandbox.close()
        assert not any(Path(f"/proc/{pid}").exists() for pid in pids)
        assert not box or not Path(box).exists()
        assert sandbox.run("print(2)").stdout == "2\n"
        sandbox.close()


def test_a_host_that_dies_leaves_no_worker():
    need_bubblewrap()
    code = (
        "import os, sys\nfrom tetrathlon.envs.sandbox import Sandbox\n"
        "sandbox = Sandbox(isolation=sys.argv[1])\nsandbox.run('')\n"
        "print(sandbox._link._process.pid, sandbox._link._launch.box, flush=True)\n"
        "session = sandbox.open('import time; time.sleep(60)')\nos.kill(os.getpid(), 9)\n"
    )
    for isolation in ("bwrap", "none"):
        died = subprocess.run([sys.executable, "-c", code, isolation], capture_output=True, text=True)
        pid, *box = died.stdout.split()
        assert died.returncode == -9 and is_gone(int(pid))
        assert not box or not Path(box[0]).exists()


def test_auto_falls_back_with_a_warning_and_bwrap_does_not(tmp_path, monkeypatch):
    broken = tmp_path / "bwrap"
    broken.write_text("#!/bin/sh\necho 'bwrap: No permissions to create new namespace' >&2\nexit 1\n")
    broken.chmod(0o755)
    for path, why in ((str(tmp_path), "No permissions"), (str(tmp_path / "empty"), "not installed")):
        monkeypatch.setenv("PATH", path + (":/bin" if path == str(tmp_path) else ""))
        sandbox_link._warn.cache_clear()
        with pytest.warns(RuntimeWarning, match=f"{why}.*Debian package bubblewrap"), Sandbox() as sandbox:
            assert sandbox.run("print(1)").stdout == "1\n"
            assert sandbox.isolation == "none"
        with pytest.raises(SandboxError, match=why):
            Sandbox(isolation="bwrap").run("")
    with pytest.raises(ValueError, match="isolation must be one of"):
        Sandbox(isolation="docker")


def test_a_pool_serves_threads_and_bounds_its_workers():
    results: list[Run] = []
    with SandboxPool(2) as pool:
        threads = [threading.Thread(target=lambda k=k: results.append(pool.run(f"print({k})"))) for k in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert sorted(int(run.stdout) for run in results) == list(range(8))
        assert sum(sandbox._link is not None for sandbox in pool._sandboxes) <= 2
        with pool.open(ECHO) as first, pool.open(ECHO) as second:
            assert first.request("a") + second.request("b") == "aabb"
        assert len(pool._idle) == 2
        with pytest.raises(ValueError, match="relative path"):
            pool.open(ECHO, files={"..": ""})
        assert len(pool._idle) == 2
    with pytest.raises(ValueError, match="size"):
        SandboxPool(0)


def test_a_pool_starts_no_more_workers_than_it_needs():
    with SandboxPool(4) as pool:
        for _ in range(3):
            pool.run("")
        assert sum(sandbox._link is not None for sandbox in pool._sandboxes) == 1


def test_the_shared_pool_is_one_a_process():
    assert shared() is shared()
    assert shared().run("print(1)").stdout == "1\n"
    reader, writer = os.pipe()
    pid = os.fork()
    if not pid:
        try:
            os.write(writer, f"{shared().run('print(2)').stdout.strip()} {len(shared()._idle)}".encode())
            shared().close()
        finally:
            os._exit(0)
    os.close(writer)
    with open(reader) as told:
        assert re.fullmatch(r"2 \d+", told.read())
    os.waitpid(pid, 0)
    assert shared().run("print(3)").stdout == "3\n"
    shared().close()
