"""``python -m fastpickle verify``: it sees each dump, finds each difference, and leaves no trace in the program.

    a program, written to a file --> python -m fastpickle verify --log --> its records, exit status, what it printed

What differs on purpose asks ``fastpickle.is_installed()``, which is true in the program and false in the copy.
"""

from __future__ import annotations

import os
import pickle
import subprocess
import sys
import textwrap
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path

import pytest

from fastpickle import cli
from fastpickle.cli import verify
from fastpickle.cli._disassembly import around_difference
from fastpickle.cli._records import read_log

ROOT = Path(__file__).resolve().parent.parent

works = pytest.mark.skipif(bool(verify.why_not()), reason="verify needs Linux, and CPython 3.12 or later")

BEGINNING = """
    import io, os, pickle, sys
    import fastpickle

    class Odd:  # pickled in another way under install()
        def __reduce__(self):
            return str, ("fast" if fastpickle.is_installed() else "stock",)

    def dump(obj, file=None, protocol=4, cls=pickle._Pickler, **arguments):
        cls(io.BytesIO() if file is None else file, protocol, **arguments).dump(obj)
"""


@dataclass
class Verified:
    """What came of verifying a program: the exit status, what was printed, and the records."""

    status: int
    out: str
    err: str
    results: list[str]
    whys: list[str]
    said: str


def written(folder: Path, program: str) -> Path:
    """Write a program to a file."""
    script = folder / "program.py"
    script.write_text(textwrap.dedent(BEGINNING) + textwrap.dedent(program))
    return script


def run_alone(folder: Path, program: str) -> subprocess.CompletedProcess[str]:
    """Run a program without verifying it."""
    script = written(folder, program)
    return subprocess.run([sys.executable, script.name], cwd=folder, capture_output=True, text=True, timeout=60)


def verified(
    folder: Path,
    program: str,
    *options: str,
    arguments: tuple[str, ...] = (),
    log: str = "log",
    reads: bool = True,
) -> Verified:
    """Verify a program, and read the log, which has that name in the folder."""
    script = written(folder, program)
    command = [sys.executable, "-m", "fastpickle", "verify", "--log", str(folder / log), *options, str(script)]
    command += arguments
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=60)
    records = read_log(folder / log) if reads else []
    return Verified(
        done.returncode,
        done.stdout,
        done.stderr,
        [record.result for record in records],
        [record.why for record in records],
        "\n".join(line for record in records for line in (*record.where, *record.said)),
    )


# It sees what there is to see.

PLAIN = {
    "small": "dump({'a': 1})",
    "by the C pickler": "dump([{'n': i, 't': str(i)} for i in range(3000)])",
    "an object": "dump(Odd)",
    "protocol 0": "dump([1, 'a', None], protocol=0)",
    "unpicklable": """
        try:
            dump([1, lambda: 0])
        except (pickle.PicklingError, AttributeError):
            pass
    """,
    "a file on disk": "dump(list(range(9)), open('x', 'wb'))",
    "an unbuffered file": "dump(list(range(9)), open('x', 'wb', buffering=0))",
    "behind other data": """
        with open('x', 'wb') as file:
            file.write(b'begin')
            dump(list(range(30000)), file)
    """,
    "behind data in memory": "file = io.BytesIO(b'12345678'); file.seek(3); dump([1], file)",
    "a file of Python's": """
        import gzip
        with gzip.open('x', 'wb') as file:
            dump(list(map(str, range(30000))), file)
    """,
    "a pickler of ours": "dump({'a': [1] * 100}, cls=fastpickle.Pickler)",
    "a subclass with a hook": """
        class Named(pickle._Pickler):
            def persistent_id(self, obj):
                return 'three' if obj == 3 else None
        dump([1, 2, 3], cls=Named)
    """,
    "in another thread": """
        import threading
        thread = threading.Thread(target=dump, args=([1, 2],))
        thread.start()
        thread.join()
    """,
    "in a process that is forked": """
        pid = os.fork()
        if not pid:
            dump([1])
            os._exit(0)
        os.waitpid(pid, 0)
    """,
}


@works
@pytest.mark.parametrize("case", PLAIN)
def test_dump_is_compared_and_is_the_same(tmp_path: Path, case: str) -> None:
    """A dump to any kind of file, in any thread or forked process, is compared."""
    done = verified(tmp_path, PLAIN[case])
    assert (done.results, done.status) == (["identical"], 0), done.err


@works
@pytest.mark.parametrize("case", ["BytesIO()", "open('x', 'wb')", "gzip.open('x', 'wb')"])
def test_difference_is_found(tmp_path: Path, case: str) -> None:
    """What stock writes otherwise is told with its line of the program, and makes the exit status 1."""
    done = verified(
        tmp_path, f"import gzip; from io import BytesIO; file = {case}; dump([1, Odd()], file); file.close()"
    )
    assert (done.results, done.status) == (["different"], 1)
    assert "program.py:" in done.said
    assert "SHORT_BINUNICODE 'stock'" in done.said
    assert "SHORT_BINUNICODE 'fast'" in done.said
    assert done.err.rstrip().endswith("1 of 1 dumps compared with stock's, 48 bytes: 1 DIFFERENT")


@works
def test_error_that_differs_is_found(tmp_path: Path) -> None:
    """An error's text, or that there is one, counts; an address in it does not."""
    done = verified(
        tmp_path,
        """
        class Fails:
            def __init__(self, when): self.when = when
            def __reduce__(self):
                if fastpickle.is_installed() in self.when:
                    raise ValueError(f"no {object()}, {len(self.when)}")
                return str, ()
        for when in ((True,), (False,), (True, False)):
            try:
                dump(Fails(when))
            except ValueError:
                pass
        """,
    )
    assert done.results == ["different", "different", "identical"], done.err
    assert "stock: none" in done.said
    assert "stock: ValueError: no <object object at 0x>, 1" in done.said


@works
def test_dumps_of_one_pickler_and_dumps_within_dumps(tmp_path: Path) -> None:
    """The memo of dumps before is stock's too, also if it is still with C; a dump inside of one is compared as well."""
    done = verified(
        tmp_path,
        """
        pickler = pickle._Pickler(io.BytesIO(), 4)
        texts = [str(i) for i in range(3000)]
        pickler.dump(texts)
        pickler.dump(texts[5:9])
        class Outer:
            def __reduce__(self):
                dump(texts)
                return str, ()
        dump(Outer())
        """,
    )
    assert done.results[:2] == ["identical"] * 2
    assert sorted(done.results[2:]) == ["identical"] * 2


@works
def test_what_is_random_is_random_in_the_same_way(tmp_path: Path) -> None:
    """The module random goes on in a copy as in the program; what varies otherwise is not compared, and said so."""
    done = verified(
        tmp_path,
        """
        import random
        class Random:
            def __reduce__(self): return float, (random.random(),)
        class Varies:
            def __reduce__(self): return bytes, (os.urandom(8),)
        dump(Random())
        dump(Varies())
        """,
    )
    assert done.results == ["identical", "not compared"]
    assert done.whys[1] == "stock itself does not write the same twice"


@works
def test_what_only_a_copy_makes_different(tmp_path: Path) -> None:
    """What ours writes otherwise in a copy, too, is not ours: that other threads have ended, its group of processes."""
    done = verified(
        tmp_path,
        """
        import threading
        event = threading.Event()
        thread = threading.Thread(target=event.wait)
        thread.start()
        class Alive:
            def __reduce__(self): return bool, (thread.is_alive(),)
        class Group:
            def __reduce__(self): return int, (os.getpgrp(),)
        dump(Alive())
        dump(Group())
        event.set()
        """,
    )
    assert done.results == ["identical"] * 2, done.err


@works
@pytest.mark.parametrize(
    ("how", "why"),
    [
        ("time.sleep(60)", "stock was not through after 0.5 s"),
        ("os.kill(os.getpid(), 9)", "the copy of the process died"),
    ],
)
def test_copy_that_does_not_end_well_harms_nobody(tmp_path: Path, how: str, why: str) -> None:
    """The program goes on, and its next dump is compared."""
    done = verified(
        tmp_path,
        f"""
        import time
        class Bad:
            def __reduce__(self):
                if not fastpickle.is_installed():
                    {how}
                return str, ()
        dump(Bad())
        dump([1])
        """,
        "--timeout",
        "0.5",
    )
    assert (done.results, done.whys) == (["not compared", "identical"], [why, ""])
    assert done.status == 0


# It leaves no trace.


@works
def test_program_does_everything_once(tmp_path: Path) -> None:
    """Files, pipes, the terminal, positions of files, objects and random numbers are as if nothing were compared."""
    program = """
        import random
        (read, write), (other, _) = os.pipe(), os.pipe()
        log = open('log.txt', 'a', buffering=1)
        source = open('source.txt', 'w+'); source.write('abcdef'); source.seek(0)
        class Busy:
            calls = 0
            def __reduce__(self):
                Busy.calls += 1
                print('reduced', flush=True)
                log.write('reduced\\n')
                os.write(write, b'x')
                return str, (source.read(2),)
        random.seed(3)
        for i in range(3):
            dump([1, Busy()])
            print(random.random())
        print(Busy.calls, source.tell(), os.read(read, 99), open('log.txt').read(), sorted(os.listdir()))
        print(sorted(vars(pickle._Pickler(io.BytesIO()))))
    """
    plain, beside = tmp_path / "plain", tmp_path / "beside"
    for folder in plain, beside:
        folder.mkdir()
    alone = run_alone(plain, program)
    done = verified(beside, program)
    assert (alone.returncode, done.status) == (0, 0), alone.stderr + done.err
    assert done.results == ["identical"] * 3
    assert done.out.replace("'log', ", "") == alone.stdout


@works
def test_nothing_is_left_open_or_running(tmp_path: Path) -> None:
    """After many dumps there are as many files and children as before, and in the end no process."""
    done = verified(
        tmp_path,
        """
        def state():
            children = open(f'/proc/self/task/{os.getpid()}/children').read()
            return len(os.listdir('/proc/self/fd')), children
        before = state()
        for i in range(20):
            dump([i, Odd()] if i % 10 == 9 else [i])
        assert state() == before, (before, state())
        """,
    )
    assert done.status == 1, done.err  # for Odd; an AssertionError would be told
    assert "AssertionError" not in done.err
    assert (done.results.count("identical"), done.results.count("different")) == (18, 2)


@works
def test_program_that_forbids_or_fails_forks(tmp_path: Path) -> None:
    """Where no copy can be made the program does not notice, and the reason is told."""
    done = verified(
        tmp_path,
        """
        def hook(event, arguments):
            if event == 'os.fork':
                raise RuntimeError('no forks here')
        sys.addaudithook(hook)
        dump([1])
        print('done')
        """,
    )
    assert (done.status, done.out) == (2, "done\n")
    assert "NOTHING COMPARED" in done.err
    assert done.whys == ["RuntimeError('no forks here')"]


@works
def test_files_that_the_program_closes_and_locks(tmp_path: Path) -> None:
    """Nothing is written to files that took the numbers of ones of ours, and locks are not let go of."""
    done = verified(
        tmp_path,
        """
        import fcntl, subprocess
        os.closerange(3, 256)
        first, second = open('first', 'wb'), open('second', 'wb')
        fcntl.lockf(second, fcntl.LOCK_EX)
        dump([1])
        dump([1], second)
        lock = "import fcntl; fcntl.lockf(open('second', 'ab'), fcntl.LOCK_EX | fcntl.LOCK_NB)"
        taken = subprocess.run([sys.executable, '-c', lock], stderr=subprocess.PIPE).returncode == 0
        second.close()
        print(taken, os.path.getsize('first'), pickle.load(open('second', 'rb')))
        """,
    )
    assert (done.status, done.out) == (0, "False 0 [1]\n"), done.err
    assert done.results == ["identical"] * 2


@works
def test_signals_reach_the_program(tmp_path: Path) -> None:
    """What a handler raises is raised in the program, however often, and Ctrl-C ends it; no copy is left."""
    done = verified(
        tmp_path,
        """
        import functools, signal, threading, time
        class Late(Exception): pass
        def late(*_): raise Late
        signal.signal(signal.SIGALRM, functools.partial(late, 1))
        threading.Thread(target=time.sleep, args=(60,), daemon=True).start()  # it may be told of a signal, too
        count = 0
        for i in range(40):
            try:
                signal.setitimer(signal.ITIMER_REAL, 0.002 + i / 10000)
                while True:
                    dump([i])
            except Late:
                count += 1
        print(count, len(os.listdir('/proc/self/fd')) < 9, open(f'/proc/self/task/{os.getpid()}/children').read())
        class Interrupted:
            def __reduce__(self):
                if fastpickle.is_installed():
                    os.kill(os.getpid(), signal.SIGINT)
                return str, ()
        dump(Interrupted())
        """,
    )
    assert (done.status, done.out) == (130, "40 True \n"), done.err
    assert "different" not in done.results
    assert done.whys[-1] == "a signal's handler ended it"


@works
def test_programs_files_are_as_they_are_otherwise(tmp_path: Path) -> None:
    """Files are flushed at the end, also after a difference; who appends to a file does not disturb another one."""
    done = verified(
        tmp_path,
        """
        one, other = open('log', 'ab'), open('log', 'ab')
        for file in one, other, one:
            dump([1, 2], file)
            file.flush()
        tail = open('tail', 'w')
        tail.write('last')
        dump(Odd())
        """,
        log="records",
    )
    assert (done.results, done.status) == (["identical"] * 3 + ["different"], 1)
    assert (tmp_path / "tail").read_text() == "last"
    assert len((tmp_path / "log").read_bytes()) == 3 * len(pickle.dumps([1, 2], 4))


@works
def test_copy_without_files_of_its_own_dumps_nothing(tmp_path: Path) -> None:
    """Where no file in memory can be had, the program's files are left alone."""
    done = verified(
        tmp_path,
        """
        def refuse(name): raise PermissionError(name)
        os.memfd_create = refuse
        with open('x', 'wb') as file:
            dump([1, 2], file)
        print(os.path.getsize('x') < 25)
        """,
    )
    assert (done.results, done.out) == (["not compared"], "True\n")


@works
def test_log_that_cannot_be_written(tmp_path: Path) -> None:
    """A difference is a difference, also where it cannot be told which."""
    for obj, status in ("Odd()", 1), ("1", 2):
        done = verified(tmp_path, f"os.remove('log'); os.mkdir('log'); dump([{obj}])", reads=False)
        assert done.status == status, done.err
        assert "1 of the dumps could not be written" in done.err
        os.rmdir(tmp_path / "log")


@works
def test_process_that_is_forked_during_a_dump(tmp_path: Path) -> None:
    """The child lets go of that dump, and its own are compared; the parent's is, too."""
    done = verified(
        tmp_path,
        """
        class Forks:
            def __reduce__(self):
                if fastpickle.is_installed():
                    pid = os.fork()
                    if not pid:
                        dump([2])
                        os._exit(0)
                    os.waitpid(pid, 0)
                return str, ()
        dump([Forks()])
        """,
    )
    assert done.results == ["identical"] * 2, done.err


@works
def test_difference_is_told_where_broken_pipes_kill(tmp_path: Path) -> None:
    """A program that lets SIGPIPE end it is not ended by us."""
    done = verified(tmp_path, "import signal; signal.signal(signal.SIGPIPE, signal.SIG_DFL); dump(Odd()); dump([1])")
    assert (done.results, done.status) == (["different", "identical"], 1)


@works
@pytest.mark.parametrize("spare", range(2, 14, 2))
def test_too_few_files(tmp_path: Path, spare: int) -> None:
    """Where no more files can be opened nothing hangs, and nothing is left open."""
    done = verified(
        tmp_path,
        f"""
        import resource
        count = len(os.listdir('/proc/self/fd')) - 1
        resource.setrlimit(resource.RLIMIT_NOFILE, (count + {spare}, count + {spare}))
        dump([1]); dump([2])
        print(len(os.listdir('/proc/self/fd')) - 1 == count)
        """,
        "--timeout",
        "5",
    )
    assert done.out == "True\n", done.err
    assert done.status == (0 if "identical" in done.results else 2)
    assert set(done.results) <= {"identical", "not compared"}


@works
def test_exceptions_near_the_recursion_limit(tmp_path: Path) -> None:
    """Functions that do not pickle raise what they raise without us, at any depth."""
    program = """
        def deep(n):
            if n == 0: raise ValueError
            deep(n - 1)
        found = set()
        dump([1])
        for n in range(900, 1000):
            try: deep(n)
            except (ValueError, RecursionError) as exc: found.add((n, type(exc).__name__))
        print(len([1 for n, name in found if name == 'ValueError']))
    """
    alone = run_alone(tmp_path, program)
    done = verified(tmp_path, program)
    assert 0 <= int(alone.stdout) - int(done.out) <= 8  # the frames of `python -m fastpickle verify` itself


# It tells what differs from what cannot be told.


@works
def test_buffers_out_of_band_are_compared(tmp_path: Path) -> None:
    """What a buffer_callback is given counts."""
    done = verified(
        tmp_path,
        """
        class Buffer:
            def __init__(self, stock, fast): self.data = stock, fast
            def __reduce_ex__(self, protocol):
                return bytes, (pickle.PickleBuffer(self.data[fastpickle.is_installed()]),)
        taken = []
        dump([Buffer(b'1' * 99, b'1' * 99)], protocol=5, buffer_callback=taken.append)
        dump([Buffer(b'stock', b'fast')], protocol=5, buffer_callback=taken.append)
        print(len(taken))
        """,
    )
    assert (done.results, done.out) == (["identical", "different"], "2\n")
    assert "buffers out of band, stock: [(5, False)]" in done.said


@works
def test_dumps_of_ours_is_compared(tmp_path: Path) -> None:
    """`fastpickle.dumps` makes no pickler, most often, and is compared once."""
    done = verified(
        tmp_path,
        """
        import collections
        for obj in [1, 2], collections.Counter('abc'), Odd(), lambda: 1:
            try: fastpickle.dumps(obj)
            except (AttributeError, pickle.PicklingError): pass
        fastpickle.dumps([1], 2, fix_imports=False)
        """,
    )
    assert done.results == ["identical", "identical", "different", "identical", "identical"], done.err


@works
def test_sockets_and_addresses_make_no_difference(tmp_path: Path) -> None:
    """A copy writes to no socket, and hears from none; an address in the bytes is none that a second copy has."""
    done = verified(
        tmp_path,
        """
        import socket
        ours, theirs = socket.socketpair()
        file = ours.makefile('wb')
        dump([1, 2], file)
        file.flush()
        class Asks:
            def __reduce__(self):
                ours.sendall(b'x')
                return str, (theirs.recv(1),)
        print(pickle.loads(theirs.recv(99)), end=' ')
        dump(Asks())
        theirs.setblocking(False)
        try: print(theirs.recv(9))
        except BlockingIOError: print('nothing')
        class Address:
            def __reduce__(self): return str, (repr(object()) + repr(id([])),)
        for _ in range(20):
            dump(Address())
        """,
    )
    assert done.out == "[1, 2] nothing\n"
    assert done.results[:2] == ["identical", "not compared"], done.err
    assert "no pipes and sockets" in done.whys[1]
    assert "different" not in done.results


@works
def test_program_that_uninstalls(tmp_path: Path) -> None:
    """A memo that is still with C is found by the copy, also when fastpickle is not installed any more."""
    done = verified(
        tmp_path,
        """
        other = fastpickle.Pickler(io.BytesIO(), 4)
        other.dump([str(i) for i in range(3000)])
        fastpickle.uninstall()
        class Asks(fastpickle.Pickler):
            def persistent_id(self, obj):
                return str(len(other.memo)) if obj == 3 else None
        dump([1, 3], cls=Asks)
        dump([1])
        """,
    )
    assert done.results == ["identical"] * 2, done.err


# It runs a program as Python does.


@works
def test_arguments_status_and_error_are_the_programs(tmp_path: Path) -> None:
    """The program finds its arguments, its folder and itself, and its exit status is passed on."""
    (tmp_path / "beside_it.py").write_text("VALUE = 5")
    program = """
        import beside_it
        class Own: pass
        dump(Own())
        print(sys.argv[1:], __name__, sys.modules['__main__'].Own is Own)
        sys.exit(beside_it.VALUE)
    """
    done = verified(tmp_path, program, arguments=("--every", "-m", "x"))
    assert (done.status, done.out) == (5, "['--every', '-m', 'x'] __main__ True\n")
    assert done.results == ["identical"]
    for last, status, err in ("1 / 0", 1, "ZeroDivisionError"), ("sys.exit('why')", 1, "why"), ("", 0, ""):
        done = verified(tmp_path, f"dump([1])\n{last}")
        assert done.status == status
        assert err in done.err
        assert "1 of 1 dumps compared" in done.err


@works
def test_module_and_one_dump_in_so_many(tmp_path: Path) -> None:
    """A module is run by its name; of many dumps some are compared; the log is left where none was asked for."""
    (tmp_path / "package").mkdir()
    (tmp_path / "package" / "__main__.py").write_text(
        textwrap.dedent(BEGINNING) + "for i in range(40): dump([i])\nprint(sys.argv[1:])"
    )
    command = [sys.executable, "-m", "fastpickle", "verify", "--every", "4", "-m", "package", "-x"]
    environment = {**os.environ, "TMPDIR": str(tmp_path / "package")}
    done = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True, timeout=60)
    assert (done.returncode, done.stdout) == (0, "['-x']\n"), done.stderr
    compared = int(done.stderr.splitlines()[-1].split()[0])
    assert 1 <= compared < 40
    assert not list((tmp_path / "package").glob("fastpickle-*"))


@works
def test_process_that_the_program_has_forked_reports_nothing(tmp_path: Path) -> None:
    """A child that runs to the end of the program leaves the report, and the log, to the process that was started."""
    done = verified(tmp_path, "dump([1]); pid = os.fork(); dump([2])\nif pid: os.waitpid(pid, 0)")
    assert done.results == ["identical"] * 3
    assert done.err.count("dumps compared") == 1


@works
@pytest.mark.skipif(find_spec("dill") is None, reason="it runs a test of dill's")
def test_upstreams_tests_are_verified(tmp_path: Path) -> None:
    """`python -m compat --verify` compares the dumps of a test of dill's in both of its modes."""
    command = [sys.executable, "-m", "compat", "dill", "--verify", "--test", "test_check.py::test_simple()"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stdout + done.stderr
    counts = [line.split()[1:] for line in done.stdout.splitlines() if line.startswith("dill._dill.Pickler")]
    assert len(counts) == 1
    assert int(counts[0][0]) >= 2
    assert counts[0][1:] == ["0", "0"]
    assert done.stdout.rstrip().endswith(f"{counts[0][0]} passed, 0 failed")


def test_wrong_use_is_told_in_a_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """What cannot be done is status 2 and one line, on a Python that is too old too."""
    script = tmp_path / "x.py"
    script.write_text("")
    wrong = [["nosuch.py"], ["--every", "0", str(script)], ["--timeout", "0", str(script)]]
    wrong += [["--log", str(place), str(script)] for place in (tmp_path, tmp_path / "no" / "log")]
    wrong += [["--timeout", "inf", str(script)], [str(tmp_path)]]
    for arguments in wrong:
        assert cli.main(["verify", *arguments]) == 2
        captured = capsys.readouterr()
        assert captured.out == ""
        assert captured.err.startswith("fastpickle verify: ")
        assert captured.err.count("\n") == 1


@works
def test_end_of_a_program(tmp_path: Path) -> None:
    """Threads and functions for the end find `__main__`, and are seen; so is what forked processes do until then."""
    done = verified(
        tmp_path,
        """
        import atexit, threading, time
        class Own: pass
        def late(): time.sleep(0.2); dump(Own()); print('late')
        atexit.register(dump, [Own()])
        sys.excepthook = lambda kind, *_: print(kind.__name__)
        threading.Thread(target=late).start()
        print(os.path.isabs(__file__), __package__)
        1 / 0
        """,
    )
    assert (done.status, done.out) == (1, "True None\nZeroDivisionError\nlate\n"), done.err
    assert len(done.results) == 2
    if any(done.whys):  # 3.12 forks no more then
        assert set(done.whys) == {'RuntimeError("can\'t fork at interpreter shutdown")'}
    else:
        assert done.results == ["identical"] * 2


@works
def test_streams_that_are_closed_or_replaced(tmp_path: Path) -> None:
    """The report goes to the process's stderr, whatever the program does to `sys`."""
    for last in "sys.stdout.close()", "sys.stderr.close()", "sys.stdout = sys.stderr = io.StringIO()":
        done = verified(tmp_path, f"dump([1]); {last}")
        assert done.status == 0, done.err
        assert "1 of 1 dumps compared" in done.err


@works
def test_program_without_dumps_says_so(tmp_path: Path) -> None:
    """That nothing was compared is no success to be read over."""
    done = verified(tmp_path, "")
    assert (done.status, done.err.strip()) == (2, "fastpickle verify: no dump was seen")
    command = [sys.executable, "-m", "fastpickle", "verify", "-m", "nosuch.module"]
    no_such = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=60)
    assert (no_such.returncode, no_such.stdout) == (2, "")
    assert no_such.stderr.startswith("fastpickle verify: nosuch.module: there is no such module")


def test_disassembly_shows_where_pickles_differ() -> None:
    """The opcodes around the first byte that differs, also where one pickle is only a part of the other."""
    whole = b"\x80\x04K\x01K\x02\x86."
    lines = around_difference(whole, whole[:5])
    assert lines[0] == "bytes, from 5: stock wrote 8 of them, ours 5"
    assert sum("BININT1 2" in line for line in lines) == 1
    assert lines[-1].split()[:2] == ["5", "(not"]
    lines = around_difference(whole, whole.replace(b"\x02", b"\x03"))
    assert [line.split()[-1] for line in lines if "BININT1" in line] == ["1", "2", "1", "3"]
    framed = pickle.dumps(["a", 1], 4)
    lines = around_difference(framed, pickle.dumps(["a", "bc"], 4))
    assert lines[0] == f"bytes, from 3: stock wrote {len(framed)} of them, ours {len(framed) + 3}"
    assert [line.split()[-1] for line in lines if "BININT1" in line] == ["1"]
    assert sum(line.endswith("SHORT_BINUNICODE 'bc'") for line in lines) == 1
