"""Versions of dill that have not been read: what is the same in them is used, what is not is called.

Each is the dill that is installed, under another version's number and with one function changed so that its bytes tell
whether it was called: it writes a None that it drops again.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from operator import attrgetter
from pathlib import Path
from typing import Any

import pytest
from oracle.allowed import DILL_PICKLES_CODE, PYPY
from oracle.dills import dill

from fastpickle import hooks
from fastpickle.backends import _dill_versions as versions
from fastpickle.backends._source import digests

if dill.__version__ not in versions.KNOWN_VERSIONS:
    pytest.skip("these tests change a version that has been read", allow_module_level=True)

CALLED = "{pickler}.write(b'N0')  # {name}"
#: A function's name -> where it is changed: a line of it, before which it says that it was called, and its pickler.
CHANGED = {
    "save_module_dict": ("        StockPickler.save_dict(pickler, obj)", "pickler"),
    "save_type": ("        pickler.save_reduce(_load_type, (_typemap[obj],), obj=obj)", "pickler"),
    "save_function": ("    if not _locate_function(obj, pickler):", "pickler"),
    "save_code": ("    pickler.save_reduce(_create_code, args, obj=obj)", "pickler"),
    "save_cell": ("        f = obj.cell_contents", "pickler"),
    "save_singleton": ("    pickler.save_reduce(_eval_repr, (obj.__repr__(),), obj=obj)", "pickler"),
    "Pickler.save": ("        StockPickler.save(self, obj, save_persistent_id)", "self"),
    "Pickler.dump": ("        StockPickler.dump(self, obj)", "self"),
}  # fmt: skip
SCRIPT = """
import copyreg, json, sys, warnings
import dill, fastpickle
from dill import _dill

assert dill.__file__.startswith(sys.argv[1]) and dill.__version__ == "9.9", (dill.__file__, dill.__version__)

class Point:
    def __init__(self, x):
        self.x = x

copyreg._slotnames(Point)  # which is kept in the class

def closure(k):
    def inner(x, y=3):
        return x + y + k
    return inner

SAMPLES = {
    "ints": list(range(3000)),
    "records": [{"id": i, "name": f"n{i}", "tags": ("a", "b")} for i in range(300)],
    "small": {"a": 1, "b": [1, 2, (3, "x")]},
    "classes": [int, str, dill.Pickler, Point, type(None)] * 2,
    "functions": [len, json.dumps, closure(1), closure(2), lambda: 3],
    "closure and ints": (closure([1]), list(range(2000))),
    "instances": [Point(i) for i in range(100)],
    "ranges": [range(i) for i in range(100)],
    "module": [json, sys, vars(json)],
}

def gives(dumps, *args, **kwds):
    try:
        return dumps(*args, **kwds).hex()
    except Exception as exc:
        return repr(exc)

def written():
    found = {}
    for name, obj in SAMPLES.items():
        for protocol in 0, 2, 4, 5:
            for again in range(2):
                for k in {"byref": True}, {"recurse": True}, {}:
                    with warnings.catch_warnings(record=True) as warned:
                        warnings.simplefilter("always")
                        gave = gives(dill.dumps, obj, protocol, **k)
                    where = [[w.category.__name__, w.filename, w.lineno] for w in warned]
                    found[f"{name}, protocol {protocol}, {k}"] = [gave, where]
    return found

stock = written()
fastpickle.install()
installed = written()
warnings.simplefilter("ignore")
from fastpickle.backends import dill as backend
own = {name: gives(backend.dumps, obj, 4) for name, obj in SAMPLES.items()}
fastpickle.uninstall()
assert own == {name: gives(dill.dumps, obj, 4) for name, obj in SAMPLES.items()}
from fastpickle import hooks
known = {
    "plain data": (dict, _dill.save_module_dict) in hooks.graft_rules,
    "classes": _dill.save_type in hooks.saved_by_name,
    "functions": _dill.save_function in hooks.saved_by_name,
    "by value": "fastpickle.backends._dill_functions" in sys.modules,
}
print(json.dumps([[name for name in stock if stock[name] != installed[name]], known, stock]))
"""


def run(folder: Path, changed: str | None) -> tuple[list[str], dict[str, bool], dict[str, Any]]:
    """Return what differs in a version of dill, what is known of it, and what it writes and warns of."""
    package = folder / "dill"
    shutil.copytree(Path(dill.__file__).parent, package, ignore=shutil.ignore_patterns("tests", "__pycache__"))
    info = package / "__info__.py"
    info.write_text(info.read_text("utf-8") + "\n__version__ = '9.9'\n", "utf-8")
    if changed is not None:
        line, pickler = CHANGED[changed]
        source = (package / "_dill.py").read_text("utf-8")
        begin = source.index(f"def {changed.rpartition('.')[2]}(", source.index("class Pickler(StockPickler)"))
        at = source.index(line + "\n", begin)
        call = " " * (len(line) - len(line.lstrip())) + CALLED.format(pickler=pickler, name=changed) + "\n"
        (package / "_dill.py").write_text(source[:at] + call + source[at:], "utf-8")
    root = Path(hooks.__file__).parent.parent
    done = subprocess.run(
        [sys.executable, "-c", SCRIPT, str(folder)],
        env={**os.environ, "PYTHONPATH": os.pathsep.join([str(folder), str(root)])},
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
    )
    assert done.returncode == 0, done.stderr
    found: Any = json.loads(done.stdout)
    return found[0], found[1], found[2]


@pytest.fixture(scope="module")
def unchanged(tmp_path_factory: Any) -> tuple[list[str], dict[str, bool], dict[str, Any]]:
    """What is known of a version to come in which nothing has changed, and what it writes."""
    return run(tmp_path_factory.mktemp("unchanged"), None)


def test_the_same_under_another_number(unchanged: Any) -> None:
    differing, known, _ = unchanged
    assert not differing
    if dill.__version__ == "0.4.1":
        assert known == {"plain data": True, "classes": True, "functions": True, "by value": not PYPY}


@pytest.mark.parametrize("changed", CHANGED)
def test_changed(changed: str, unchanged: Any, tmp_path: Path) -> None:
    if changed in ("save_code", "save_cell") and not DILL_PICKLES_CODE:
        pytest.skip("dill fails before it is called")
    differing, known, written = run(tmp_path, changed)
    assert not differing
    assert written != unchanged[2], "what was changed is not called by these samples"
    assert not known["by value"] or changed not in versions.FUNCTIONS
    if dill.__version__ == "0.4.1":
        assert known["plain data"] == (changed not in versions.PLAIN_DATA)
        assert known["classes"] == (known["plain data"] and changed != "save_type")
        assert known["functions"] == (known["plain data"] and changed != "save_function")


@pytest.mark.skipif(dill.__version__ != "0.4.1", reason="the digests are those of 0.4.1")
@pytest.mark.parametrize("name", versions._AS_READ)
def test_digests(name: str) -> None:
    if PYPY and name == "save_instancemethod0":
        pytest.skip("dill has another one there; what is known of functions is not used")
    function = attrgetter(name)(dill._dill)
    assert digests(getattr(function, "__func__", function))[0] in versions._AS_READ[name]


def test_all_functions_that_are_asked_for_have_one() -> None:
    assert {*versions.PLAIN_DATA, *versions.NAMES, *versions.FUNCTIONS} <= versions._AS_READ.keys()
