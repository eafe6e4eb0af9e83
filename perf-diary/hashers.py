"""`joblib.hash`, `joblib.dump` and datasets' `Hasher.hash`: stock against `install()`, and against the backends.

    round:  uninstall() -> every shape, by the library and by the backend
            install()   -> every shape, by the library
    table:  stock / installed, stock / backend: medians of the rounds

Before a shape is timed its digests, or bytes, must be the same. With FASTPICKLE_PURE=1 the C pickler is off; it has no
part in the digests, since texts are not memoized and dicts are sorted. `joblib.dump` writes to memory. A round switches
once: CPython caches nothing any more of a class that has been changed about a thousand times.

Not for: what else sits on pickle._Pickler (``pure.py``, ``grafting.py``).
"""

from __future__ import annotations

import argparse
import dataclasses
import datetime
import importlib
import io
import os
import random
import statistics
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parent))

import grafting

import fastpickle

SEED = 148707

#: The library's function, and the backend's.
LIBRARIES = {
    "joblib.hash": ("joblib", "hash", "fastpickle.backends.joblib", "hash"),
    "joblib.dump": ("joblib", "dump", "fastpickle.backends.joblib", "dump"),
    "Hasher.hash": ("datasets.fingerprint", "Hasher.hash", "fastpickle.backends.datasets", "hash"),
}


@dataclasses.dataclass
class Point:
    """An instance without anything of its own."""

    x: int
    name: str
    tags: list[int]


Point.__module__ = "hashers"  # so that it is saved by its name
sys.modules.setdefault("hashers", sys.modules[__name__])


def _counter(words: dict[str, int]) -> Callable[[str], int]:
    """Make a function that only its own code tells from others, as `Dataset.map` is given."""
    return lambda text: sum(words.get(word, 0) for word in text.split())


def shapes(library: str) -> dict[str, Any]:
    """Make JSON-like records, and what is hashed besides.

    Args:
        library: One of LIBRARIES: joblib cannot hash functions that have no name.
    """
    generator = random.Random(SEED)

    def record(i: int) -> dict[str, Any]:
        return {
            "id": i,
            "name": f"user {i}",
            "score": generator.random(),
            "active": i % 3 == 0,
            "parent": None,
            "tags": [f"t{generator.randrange(30)}" for _ in range(generator.randrange(5))],
            "counts": [generator.randrange(100_000) for _ in range(3)],
        }

    found = {
        "json_records": [record(i) for i in range(500)],
        "records_of_records": [{"user": record(i), "at": i, "kind": "a"} for i in range(200)],
        "nested_dicts": {f"k{i}": {f"j{j}": {"a": j, "b": [1.5, None]} for j in range(5)} for i in range(60)},
        "list_of_tuples": [(i, str(i), i / 3) for i in range(1000)],
        "dict_str_int": {f"key {i}": i for i in range(2000)},
        "list_of_strs": [f"text {i}" for i in range(2000)],
        "list_of_floats": [generator.random() for _ in range(3000)],
        "sets_of_ints": [{i, i + 1, i * 7} for i in range(300)],
        "dataclass_instances": [Point(i, f"p{i}", [i, i + 1]) for i in range(300)],
        "datetimes": [datetime.datetime(2020, 1, 1, i % 24, i % 60) for i in range(500)],
        "few_dataclasses": [Point(i, f"p{i}", [i, i + 1]) for i in range(20)],
        "few_datetimes": [datetime.datetime(2020, 1, 1, i % 24, i % 60) for i in range(20)],
        "one_record": record(1),
        "small_dict": {"a": 1, "b": [1, 2], "c": "x", "d": None},
        "functions": [len, statistics.mean, random.Random],
        "one_function": statistics.mean,
        "one_datetime": datetime.datetime(2020, 1, 1),
    }
    if library == "Hasher.hash":
        found["closure"] = _counter({"a": 1, "b": 2})
    try:
        numpy = importlib.import_module("numpy")
    except ImportError:
        return found
    found["rows_with_arrays"] = [{"id": i, "name": f"name {i}", "vector": numpy.arange(8.0)} for i in range(200)]
    found["data_beside_an_array"] = {"array": numpy.arange(1000.0), "rows": found["json_records"]}
    found["numpy_array"] = numpy.arange(10_000.0)
    found["numpy_arrays"] = [numpy.arange(3) for _ in range(100)]
    found["small_array"] = numpy.arange(10.0)
    found["arguments"] = {"x": numpy.ones((20, 3)), "y": numpy.arange(20), "alpha": 0.5, "solver": "auto", "seed": None}
    return {**found, **_models(numpy)}


def _models(numpy: Any) -> dict[str, Any]:
    """Make models of scikit-learn, if that is installed: what joblib saves and hashes more often than anything else."""
    try:
        linear_model = importlib.import_module("sklearn.linear_model")
        ensemble = importlib.import_module("sklearn.ensemble")
        neighbors = importlib.import_module("sklearn.neighbors")
        text = importlib.import_module("sklearn.feature_extraction.text")
        pipeline, preprocessing, svm = map(
            importlib.import_module, ("sklearn.pipeline", "sklearn.preprocessing", "sklearn.svm")
        )
    except ImportError:
        return {}
    x = numpy.random.RandomState(SEED).rand(200, 10)
    y = (x[:, 0] > 0.5).astype(int)
    texts = [f"word{i % 700} other{i % 50} text number {i}" for i in range(3000)]
    steps = preprocessing.StandardScaler(), svm.SVC()
    return {
        "model_before_fit": linear_model.LogisticRegression(),
        "logistic_regression": linear_model.LogisticRegression().fit(x, y),
        "pipeline": pipeline.make_pipeline(*steps).fit(x, y),
        "forest": ensemble.RandomForestClassifier(20, random_state=SEED).fit(x, y),
        "boosted_trees": ensemble.GradientBoostingClassifier(n_estimators=20, random_state=SEED).fit(x, y),
        "neighbours": neighbors.KNeighborsClassifier().fit(x, y),
        "words": text.TfidfVectorizer().fit(texts),
    }


def _function(module: str, name: str) -> Callable[[Any], Any]:
    owner: Any = importlib.import_module(module)
    *path, last = name.split(".")
    for part in path:
        owner = getattr(owner, part)
    found: Callable[..., Any] = getattr(owner, last)
    if name != "dump":
        return found

    def to_memory(obj: object) -> bytes:
        file = io.BytesIO()
        found(obj, file)
        return file.getvalue()

    return to_memory


def _seconds(function: Callable[[Any], Any], obj: Any, calls: int) -> float:
    start = time.process_time()
    for _ in range(calls):
        function(obj)
    return (time.process_time() - start) / calls


def measure(library: str, rounds: int, sample: float) -> tuple[str, list[str]]:
    """Time one library.

    Args:
        library: One of LIBRARIES.
        rounds: How many rounds.
        sample: How many seconds a sample takes, about.

    Returns:
        A table in Markdown, and the shapes whose digests or bytes differ.
    """
    module, name, backend, own_name = LIBRARIES[library]
    stock = _function(module, name)
    ours = _function(backend, own_name)
    objects = shapes(library)
    calls = {}
    differ = []
    for shape, obj in objects.items():
        expected = stock(obj)
        calls[shape] = max(1, int(sample / max(_seconds(stock, obj, 1), 1e-6)))
        with fastpickle.patched():
            installed = stock(obj)
        if not expected == installed == ours(obj):
            differ.append(shape)
    taken: dict[str, list[tuple[float, float, float]]] = {shape: [] for shape in objects if shape not in differ}
    for _ in range(rounds):
        first = {shape: _seconds(stock, objects[shape], calls[shape]) for shape in taken}
        second = {shape: _seconds(ours, objects[shape], calls[shape]) for shape in taken}
        with fastpickle.patched():
            for shape, samples in taken.items():
                third = _seconds(stock, objects[shape], calls[shape])
                samples.append((first[shape], third, second[shape]))
    rows = []
    for shape, seconds in taken.items():
        ratios = [statistics.median(s[0] / s[i] for s in seconds) for i in (1, 2)]
        rows.append([shape, *[f"{ratio:.2f}" for ratio in ratios]])
    return grafting.table([library, "stock / installed", "stock / backend"], rows), differ


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command.

    Args:
        argv: The arguments; those of the process if None.

    Returns:
        The exit status: 1 if a digest, or what was written, is not stock's.
    """
    parser = argparse.ArgumentParser(
        description="Time joblib.hash, joblib.dump and datasets' Hasher.hash against stock: above 1 they are faster.",
        epilog=(
            "examples:\n  %(prog)s                      about 3 minutes\n"
            "  %(prog)s --quick              about 30 seconds\n"
            "  %(prog)s --only joblib.dump   one of them"
        ),
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--quick", action="store_true", help="fewer and shorter samples")
    parser.add_argument("--only", nargs="+", metavar="NAME", choices=LIBRARIES, default=[*LIBRARIES], help="which ones")
    parser.add_argument("--dill-first", action="store_true", help="import dill before joblib, which copies its entries")
    parser.add_argument("--audited", action="store_true", help=grafting.AUDITED)
    parser.add_argument("--markdown", type=Path, metavar="FILE", help="write what is printed to FILE too")
    arguments = parser.parse_args(argv)
    if arguments.audited:
        grafting.audit()
    if arguments.dill_first:
        importlib.import_module("dill")
    rounds, sample = (5, 0.01) if arguments.quick else (11, 0.05)
    tables = []
    failed = False
    for library in arguments.only:
        module = LIBRARIES[library][0]
        try:
            importlib.import_module(module)
        except ImportError:
            print(f"NOT TIMED: {library}: {module.partition('.')[0]} is not installed", file=sys.stderr)
            continue
        table, differ = measure(library, rounds, sample)
        tables.append(table)
        for shape in differ:
            failed = True
            print(f"NOT TIMED: {library}: {shape}: not what stock gives", file=sys.stderr)
    pure = ", FASTPICKLE_PURE=1" if os.environ.get("FASTPICKLE_PURE", "0") not in ("", "0") else ""
    only = f" --only {' '.join(arguments.only)}" if len(arguments.only) < len(LIBRARIES) else ""
    flags = " --quick" * arguments.quick + " --dill-first" * arguments.dill_first + " --audited" * arguments.audited
    command = f"python perf-diary/hashers.py{flags}{only}"
    where = f"{sys.implementation.name} {sys.version.split()[0]}{pure}"
    text = "\n\n".join(tables) + f"\n\n{where}; CPU time, medians of alternating rounds. `{command}`.\n"
    if arguments.markdown is not None:
        arguments.markdown.write_text(text, encoding="utf-8")
    sys.stdout.write(text)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
