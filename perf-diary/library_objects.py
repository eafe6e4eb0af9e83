"""Objects of libraries that people pickle, most with reduces of their own: dill, or another, against itself.

    object x (stock, install(), backends.dill) --> a process of its own, in turns: the same bytes? how long?
                                               --> one line an object, and the geometric mean

What is plain in them is for C or runs; the rest is somebody's code, which is called where dill calls it, and after it
the pickler is looked at. So they show what fastpickle costs where it has least to give. An object whose library is not
installed is left out:

    pip install numpy pandas scikit-learn scipy networkx sympy pydantic attrs xarray sqlalchemy omegaconf nltk libcst
        docutils beautifulsoup4 shapely pillow pendulum astropy statsmodels lark

Not for: plain data (``grafting.py``), nor what dill saves by value (``by_value.py``).
"""

from __future__ import annotations

import argparse
import ast
import collections
import configparser
import email
import functools
import http
import importlib
import inspect
import io
import ipaddress
import json
import logging
import operator
import pickle
import platform
import random
import re
import statistics
import sys
import traceback
import types
import warnings
import xml.etree.ElementTree as ElementTree
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parent))

import by_value

#: What pickles, and in which ways.
PICKLERS = {"dill": by_value.WAYS, "pickle._Pickler": by_value.WAYS[:2], "joblib.dump": by_value.WAYS[:2]}
STATEMENTS = "def function(a, b=1):\n    return [a + b * 2 for _ in range(b)]\n"


class Node:
    """Has slots, and a state that is somebody's to make."""

    __slots__ = ("name", "number", "parts")

    def __init__(self, number: int, *parts: Any) -> None:
        self.number = number
        self.name = f"node {number}"
        self.parts = parts

    def __getstate__(self) -> dict[str, Any]:
        return {name: getattr(self, name) for name in self.__slots__}

    def __setstate__(self, state: dict[str, Any]) -> None:
        for name, value in state.items():
            setattr(self, name, value)


def _tree(depth: int) -> Node:
    return Node(depth, *([_tree(depth - 1), _tree(depth - 1)] if depth else []))


def _library(name: str) -> Any:
    return importlib.import_module(name)


def _made(name: str, make: Callable[[Any], Any]) -> Callable[[], Any]:
    """Return what makes an object with a library, which is imported then."""
    return lambda: make(_library(name))


def _iris() -> Any:
    return _library("sklearn.datasets").load_iris(return_X_y=True)


def _forest() -> Any:
    return _library("sklearn.ensemble").RandomForestClassifier(20, random_state=0).fit(*_iris())


def _pipeline() -> Any:
    scaler = _library("sklearn.preprocessing").StandardScaler()
    return _library("sklearn.pipeline").make_pipeline(
        scaler, _library("sklearn.linear_model").LogisticRegression()
    ).fit(*_iris())  # fmt: skip


def _search() -> Any:
    svc = _library("sklearn.svm").SVC()
    return _library("sklearn.model_selection").GridSearchCV(svc, {"C": [1, 10, 100], "kernel": ["rbf", "linear"]})


def _vectorizer() -> Any:
    texts = [f"word{i} is not word{i * 7 % 100} nor token{i % 30}" for i in range(300)]
    return _library("sklearn.feature_extraction.text").TfidfVectorizer().fit(texts)


def _digraph(networkx: Any) -> Any:
    graph = networkx.DiGraph()
    for i in range(200):
        graph.add_edge(f"n{i}", f"n{i * 7 % 200}", weight=i / 3, label=f"e{i}")
    return graph


def _expression(sympy: Any) -> Any:
    return sympy.expand((sum(sympy.symbols("x y z")) + 1) ** 6)


def _models(pydantic: Any) -> Any:
    address = pydantic.create_model("Address", street=(str, ...), code=(str, ...), __module__=__name__)
    user = pydantic.create_model(
        "User", id=(int, ...), name=(str, ...), tags=(list[str], ...), address=(address, ...), __module__=__name__
    )
    globals().update(Address=address, User=user)
    return [user(id=i, name=f"u{i}", tags=["a"], address={"street": "s", "code": str(i)}) for i in range(300)]


def _points(attr: Any) -> Any:
    globals()["AttrsPoint"] = point = attr.make_class("AttrsPoint", ["x", "y"], slots=True)
    point.__module__ = __name__
    return [point(i, i / 2) for i in range(500)]


def _rows(orm: Any) -> Any:
    sqlalchemy = _library("sqlalchemy")
    namespace = {
        "__tablename__": "people", "__module__": __name__,
        "id": sqlalchemy.Column(sqlalchemy.Integer, primary_key=True), "name": sqlalchemy.Column(sqlalchemy.String),
    }  # fmt: skip
    globals()["Person"] = person = type("Person", (orm.declarative_base(),), namespace)
    return [person(id=i, name=f"n{i}") for i in range(200)]


def _traceback() -> Any:
    try:
        return 1 / 0
    except ZeroDivisionError as exc:
        return traceback.TracebackException.from_exception(exc)


def _config() -> Any:
    config = configparser.ConfigParser()
    config.read_string("[a]\nx = 1\ny = 2\n[b]\nz = 3\n")
    return config


def _document(core: Any) -> Any:
    text = "Title\n=====\n\n" + "A paragraph with *emphasis*.\n\n" * 40
    document = core.publish_doctree(text, settings_overrides={"report_level": 5})
    document.reporter = document.settings = document.transformer = None
    return document


def _counters() -> Any:
    found: Any = collections.defaultdict(collections.Counter)
    for i in range(400):
        found[i % 20][i] += 1
    return found


def _fit(api: Any) -> Any:
    numbers = _library("numpy").arange(50.0)
    return api.OLS(numbers * 2 + 1, api.add_constant(numbers)).fit()


def _shapes(geometry: Any) -> Any:
    points = [geometry.Point(i, i) for i in range(100)]
    return points + [geometry.Polygon([(0, 0), (1, i), (1, 1)]) for i in range(20)]


OBJECTS: dict[str, Callable[[], Any]] = {
    "random.Random": lambda: random.Random(1),
    "100 log records": lambda: [logging.LogRecord("n", 20, "f.py", i, "text %s", ("a",), None) for i in range(100)],
    "100 regular expressions": lambda: [re.compile(f"a{i}") for i in range(100)],
    "100 statuses of HTTP": lambda: [http.HTTPStatus(200), http.HTTPStatus.NOT_FOUND] * 50,
    "100 exceptions": lambda: [ValueError(f"bad {i}", i) for i in range(100)],
    "200 addresses": lambda: [ipaddress.ip_address(f"10.0.{i}.1") for i in range(200)],
    "100 distributions": lambda: [statistics.NormalDist(i, 1) for i in range(100)],
    "200 argparse.Namespace": lambda: [argparse.Namespace(a=i, b="x", c=[1, 2]) for i in range(200)],
    "200 SimpleNamespace": lambda: [types.SimpleNamespace(a=i, b="x") for i in range(200)],
    "200 partials": lambda: [functools.partial(operator.add, i) for i in range(200)],
    "100 ChainMap": lambda: [collections.ChainMap({"a": i}, {"b": 2}) for i in range(100)],
    "100 UserDict": lambda: [collections.UserDict(a=i) for i in range(100)],
    "Counters in a defaultdict": _counters,
    "ElementTree": lambda: ElementTree.fromstring("<a>" + "<b i='1'>t<c/></b>" * 100 + "</a>"),
    "syntax tree": lambda: ast.parse(STATEMENTS * 20),
    "small syntax tree": lambda: ast.parse("x = f(a, b) + 1"),
    "email": lambda: email.message_from_string("From: a@b\nTo: c@d\nSubject: hello\n\nbody\n"),
    "ConfigParser": _config,
    "signature": lambda: inspect.signature(json.dumps),
    "TracebackException": _traceback,
    "tree of 15 nodes": lambda: _tree(3),
    "tree of 127 nodes": lambda: _tree(6),
    "10 rows with nodes": lambda: [(Node(i), {"a": Node(i), "b": i}, [Node(i, i)]) for i in range(10)],
    "60 rows with nodes": lambda: [(Node(i), {"a": Node(i), "b": i}, [Node(i, i)]) for i in range(60)],
    "bound methods": lambda: [{}.get, "x".join, [].append],
    "numpy, 100 arrays": _made("numpy", lambda numpy: [numpy.arange(10.0) for _ in range(100)]),
    "numpy, generator": _made("numpy", lambda numpy: numpy.random.default_rng(1)),
    "numpy, 20 masked arrays": _made("numpy", lambda numpy: [numpy.ma.array([1, 2], mask=[0, 1]) for _ in range(20)]),
    "pandas, frame": _made(
        "pandas", lambda pandas: pandas.DataFrame({"a": range(1000), "b": [f"x{i}" for i in range(1000)]})
    ),
    "pandas, small frame": _made("pandas", lambda pandas: pandas.DataFrame({"a": [1, 2], "b": ["x", "y"]})),
    "pandas, 50 series": _made("pandas", lambda pandas: [pandas.Series([1.0, 2.0], name=f"s{i}") for i in range(50)]),
    "pandas, 366 timestamps": _made("pandas", lambda pandas: [*pandas.date_range("2020", "2021", freq="D")]),
    "pandas, categories": _made("pandas", lambda pandas: pandas.Series(["a", "b", "c"] * 100, dtype="category")),
    "scikit-learn, forest": _forest,
    "scikit-learn, pipeline": _pipeline,
    "scikit-learn, search": _search,
    "scikit-learn, vectorizer": _vectorizer,
    "scipy, 20 sparse matrices": _made(
        "scipy.sparse", lambda sparse: [sparse.eye(10, format="csr") for _ in range(20)]
    ),
    "networkx, graph": _made("networkx", lambda networkx: networkx.gnp_random_graph(100, 0.1, seed=1)),
    "networkx, attributes": _made("networkx", _digraph),
    "sympy, expression": _made("sympy", _expression),
    "sympy, small expression": _made("sympy", lambda sympy: sympy.sin(sympy.Symbol("x")) ** 2),
    "sympy, matrix": _made("sympy", lambda sympy: sympy.Matrix(6, 6, lambda i, j: sympy.Rational(i + 1, j + 2))),
    "pydantic, 300 models": _made("pydantic", _models),
    "attrs, 500 with slots": _made("attr", _points),
    "sqlalchemy, 200 rows": _made("sqlalchemy.orm", _rows),
    "xarray, dataset": _made(
        "xarray", lambda xarray: xarray.Dataset({"a": (("x", "y"), [[1.0] * 9] * 9)}, coords={"x": [*range(9)]})
    ),
    "astropy, 50 quantities": _made("astropy.units", lambda units: [i * units.m for i in range(50)]),
    "astropy, times": _made("astropy.time", lambda time: time.Time(["2020-01-01", "2021-01-01"])),
    "statsmodels, fit": _made("statsmodels.api", _fit),
    "omegaconf, configuration": _made(
        "omegaconf",
        lambda omegaconf: omegaconf.OmegaConf.create({"a": {"b": [1, 2]}, "d": [{"x": i} for i in range(20)]}),
    ),
    "nltk, tree": _made("nltk", lambda nltk: nltk.Tree.fromstring("(S " + "(NP (D the) (N cat)) " * 40 + ")")),
    "libcst, module": _made("libcst", lambda libcst: libcst.parse_module(STATEMENTS * 8)),
    "lark, parse": _made("lark", lambda lark: lark.Lark('start: ("a" | "b")*', parser="lalr").parse("ab" * 100)),
    "docutils, document": _made("docutils.core", _document),
    "beautifulsoup, page": _made("bs4", lambda bs4: bs4.BeautifulSoup("<p>t <b>x</b></p>" * 60, "html.parser")),
    "shapely, 120 geometries": _made("shapely.geometry", _shapes),
    "pillow, image": _made("PIL.Image", lambda image: image.new("RGB", (64, 64), "red")),
    "pendulum, 100 times": _made(
        "pendulum", lambda pendulum: [pendulum.datetime(2020, 1, 1 + i % 28) for i in range(100)]
    ),
}


def dumps_of(pickler: str) -> Callable[[Any], bytes]:
    """Return what pickles with one of `PICKLERS`."""
    if pickler == "dill":
        return by_value.dumps_of(pickler)
    if pickler == "joblib.dump":
        dump = importlib.import_module("joblib").dump
    else:
        cls = pickle._Pickler  # type: ignore[attr-defined]  # typeshed does not know it

        def dump(obj: Any, file: Any) -> None:
            cls(file).dump(obj)

    def dumps(obj: Any) -> bytes:
        file = io.BytesIO()
        dump(obj, file)
        return file.getvalue()

    return dumps


def serve(way: str, names: Sequence[str], pickler: str = "dill") -> dict[str, float]:
    """Time the objects whose library is there, in this process; gives microseconds."""
    warnings.simplefilter("ignore")  # of libraries, and of dill about what is recursive
    objs = {}
    for name in names:
        try:
            objs[name] = OBJECTS[name]()
        except Exception:  # its library is not there, or not for this Python
            continue
    return by_value.compare(way, objs, dumps_of(pickler))


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command line.

    Args:
        argv: The arguments, without the name of the program.

    Returns:
        The exit status.
    """
    parser = by_value.parser_of(
        __doc__,
        "1.20x is a time 1.20 times as long as without fastpickle, so less is better. It takes 3 minutes.",
        OBJECTS,
        by_value.WAYS,
    )
    parser.add_argument("--pickler", choices=PICKLERS, default="dill", help="what pickles them (default: dill)")
    arguments = parser.parse_args(argv)
    names = list(arguments.only or OBJECTS)
    if arguments.serve:
        # By its name, so that dill finds the classes that are made here.
        print(json.dumps(importlib.import_module(Path(__file__).stem).serve(arguments.serve, names, arguments.pickler)))
        return 0
    library = arguments.pickler.partition(".")[0]
    try:
        version = getattr(importlib.import_module(library), "__version__", "")
    except ImportError:
        parser.error(f"needs {library}: pip install {library}")
    found = by_value.measure(
        names,
        arguments.turns,
        PICKLERS[arguments.pickler],
        script=__file__,
        environ_of=lambda way: {"PYTHONHASHSEED": "0"},
        options=("--pickler", arguments.pickler),
    )
    if not found["stock"]:
        print("the libraries of these are not installed")
        return 0
    print(by_value.table(found))
    print(
        f"\n{platform.python_implementation()} {platform.python_version()}, {arguments.pickler} {version}".rstrip()
        + "."
    )
    return 0


if __name__ == "__main__":
    sys.exit(main())
