"""Hooks for audit events (PEP 578), as filelock, and so datasets, adds one that is written in Python.

It is called at each `id()`, and where the code of a function is asked for: that takes a frame, and it may refuse.  No
such hook can be taken away again, so each has a process of its own.
"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from oracle.allowed import PYPY
from test_install import in_child

pytestmark = pytest.mark.skipif(PYPY, reason="an id() is no event there")

_DATA = """
    import dataclasses, datetime, io, pickle, sys, uuid

    @dataclasses.dataclass
    class Point:
        x: int
        y: str

        def move(self):
            return self

    class Reads:
        def __init__(self, x):
            self.x = x

        def __reduce__(self):
            return Reads, (self.x,)

    class Holds:
        def __init__(self, x):
            self.x = x

        def __getstate__(self):
            return dict(self.__dict__)

    data = {
        "plain": [{"a": i, "b": [str(i), None, 1.5]} for i in range(1500)],
        "small": {"a": 1, "b": [1, 2]},
        "instances": [Point(i, str(i)) for i in range(300)],
        "reads": [Reads(i) for i in range(300)],
        "holds": [Holds([i]) for i in range(300)],
        "dates": [datetime.date(2000, 1, 1 + i % 28) for i in range(50)],
        "mixed": [Reads(1), len, Point, uuid.UUID(int=5), [*range(1001)], Holds({1: 2})] * 3,
    }
"""


def test_same_bytes() -> None:
    """The hook sees no more than before where C writes, and the bytes are the same."""
    in_child(
        _DATA
        + """
    import fastpickle
    from fastpickle._stdlib import CPickler

    events = 0

    def hook(event, args):
        global events
        events += 1

    def counted(dumps, obj, protocol):
        global events
        events = 0
        return dumps(obj, protocol), events

    def dump(obj, protocol):
        file = io.BytesIO()
        fastpickle.Pickler(file, protocol).dump(obj)
        return file.getvalue()

    sys.addaudithook(hook)
    for name, obj in data.items():
        for protocol in range(6):
            expected, before = counted(pickle._dumps, obj, protocol)
            for dumps in fastpickle.dumps, dump:
                found, after = counted(dumps, obj, protocol)
                assert found == expected, (name, protocol, dumps)
                share = 0.05 if CPickler is not None and protocol > 0 else 1.01
                assert name != "plain" or after < before * share, (protocol, dumps, before, after)
    """
    )


def test_hook_that_refuses() -> None:
    """What it raises ends the dump, as it is, and what was written is what stock had written before."""
    in_child(
        _DATA
        + """
    import fastpickle

    refused = None

    def hook(event, args):
        if event == refused:
            raise PermissionError(event)

    sys.addaudithook(hook)
    ended = 0
    for name, obj in data.items():
        for event in "builtins.id", "gc.get_referents", "function.__new__", "object.__getattr__":
            for protocol in 2, 4:
                expected = pickle._dumps(obj, protocol)
                file = io.BytesIO()
                refused = event
                try:
                    fastpickle.Pickler(file, protocol).dump(obj)
                except PermissionError as error:
                    ended += 1
                    refused = None
                    assert str(error) == event, error
                    assert expected.startswith(file.getvalue()), (name, event)
                refused = None
                file = io.BytesIO()
                fastpickle.Pickler(file, protocol).dump(obj)
                assert file.getvalue() == expected, (name, event)
    assert ended
    """
    )


def test_frames(tmp_path: Path) -> None:
    """What stock can save within the recursion limit is saved, although the hook takes a frame."""
    (tmp_path / "with_hook.py").write_text("import sys\nsys.addaudithook(lambda event, args: None)\n")
    here = Path(__file__).parent
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-n0", "-p", "with_hook", "-p", "no:cacheprovider", _OF_FRAMES],
        env={**os.environ, "PYTHONPATH": os.pathsep.join((str(tmp_path), str(here.parent)))},
        capture_output=True,
        text=True,
        timeout=250,
        cwd=here,
    )
    assert done.returncode == 0, done.stdout
    assert " passed" in done.stdout


_OF_FRAMES = "test_few.py::test_no_frame_more_for_a_new_class"
