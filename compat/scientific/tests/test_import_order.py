"""joblib.hash after dill, dill after joblib, install() before, between and after: in each order the digests of stock.

``import dill`` writes its functions into the stdlib's dispatch table, and joblib copies that table when it is imported;
so stock's digests depend on the order of the imports.  The same order has to give the same digests under fastpickle.
"""

from __future__ import annotations

import functools
import json
import subprocess
import sys
from pathlib import Path

import oracle
import pytest

ORDERS = ("joblib", "dill,joblib", "joblib,dill", "dill,dill.extend(False),joblib", "joblib,dill,dill.extend(False)")

_SCRIPT = """
import sys
steps = sys.argv[1].split(",")
sys.path += sys.argv[2:]
for step in steps:
    if step == "install":
        import fastpickle
        fastpickle.install()
    elif step == "dill.extend(False)":
        dill.extend(False)
    else:
        globals()[step] = __import__(step)

import collections, functools, io, json, math, operator, types
import numpy as np

class Main:
    size = 3
    def method(self):
        return self

def function(x, y=(1, 2)):
    return x

shared = ["s", {"a": 1}]
main = Main()
main.part = [shared, shared]
data = {
    "plain": {"a": [1, 2.5, None, True, "x", b"y", (1, (2,))], "b": {"c": {}}, "d": "x" * 300, "e": {1, 2}},
    "shared": [shared, shared, {"again": shared}],
    "mixed keys": {1: "a", "b": 2, None: 3},
    "module dict": {"math": math.__dict__["pi"], "__name__": "math"},
    "instance": main,
    "class": [int, Main, np.ndarray, collections.OrderedDict, type(None)],
    "function": [function, len, operator.add, np.mean, np.sin],
    "method": [main.method, [].append, np.arange(2).sum],
    "arrays": [np.arange(5), np.array([1, "x", None, shared], object), np.zeros((2, 2)).T],
    "scalar": [np.float32(1), np.dtype("f8")],
    "masked": np.ma.array([1, 2], mask=[0, 1]),
    "random": np.random.Generator(np.random.PCG64(5)),
    "partial": functools.partial(function, 1),
    "cycle": shared + [main],
    "ordered": collections.OrderedDict(a=1, b=[2]),
    "range": [range(3), slice(1, 2), complex(1, 2), bytearray(b"x"), frozenset([1])],
    "namespace": types.SimpleNamespace(a=[1], b=np.arange(2)),
    "cell": (lambda: shared).__closure__,
    "code": function.__code__,
    "module": math,
    "property": property(function),
    "mapping": types.MappingProxyType({"a": 1}),
    "view": {"a": 1}.keys(),
    "lambda": lambda x: x,
}
found = {}
for name, value in data.items():
    file = io.BytesIO()
    calls = {"hash": lambda: joblib.hash(value), "dump": lambda: joblib.dump(value, file) or file.getvalue().hex()}
    if "dill" in steps:
        calls["dill"] = lambda: dill.dumps(value).hex()
    for what, call in calls.items():
        try:
            found[f"{name} {what}"] = call()
        except Exception as error:
            found[f"{name} {what}"] = f"{type(error).__name__}: {str(error).partition(' at 0x')[0]}"
print(json.dumps(found))
"""


@functools.cache
def results(steps: str) -> dict[str, str]:
    """Run the script in a process of its own.

    Args:
        steps: what to import and to call, in that order.

    Returns:
        Object and call -> a digest, the bytes, or the error.
    """
    return run(steps)


def run(steps: str) -> dict[str, str]:
    """Run the script, whether its results are known or not."""
    package = [] if oracle.fastpickle is None else [str(Path(oracle.fastpickle.__file__).parent.parent)]
    Path("script.py").write_text(_SCRIPT, encoding="utf-8")
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "script.py", steps, *package], stdout=subprocess.PIPE, check=True, timeout=120
    )
    found: dict[str, str] = json.loads(done.stdout)
    return found


@pytest.mark.parametrize("place", range(4))
@pytest.mark.parametrize("order", ORDERS)
def test_order(order: str, place: int) -> None:
    """In each order of imports, wherever install() stands in it, digests and bytes are stock's."""
    steps = order.split(",")
    if place > len(steps):
        pytest.skip("there is no such place")
    if oracle.fastpickle is None:
        if place == 0:
            assert run(order) == results(order)
        return
    installed = ",".join([*steps[:place], "install", *steps[place:]])
    found, expected = run(installed), results(order)
    assert found.keys() == expected.keys()
    differences = {name: (expected[name], found[name]) for name in found if found[name] != expected[name]}
    assert not differences


def test_order_matters() -> None:
    """Stock's digests do depend on the order, so that there is something to be got wrong."""
    names = [name for name in results("joblib") if name.endswith(" hash")]
    assert any(len({results(order)[name] for order in ORDERS}) > 1 for name in names)
