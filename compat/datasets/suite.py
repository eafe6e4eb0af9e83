"""What to run of datasets' tests: those that hash, pickle with dill, or find a cache by a hash.

The tests are in the source distribution only, without the ``tests/utils.py`` and ``tests/conftest.py`` that they lean
on; datasets itself and what it needs (some 300 MB) has to be in the environment.  Of the 46 test files these pickle:

    hashes   test_fingerprint.py      Hasher and fingerprint_transform
             test_py_utils.py         what map() hands to other processes
             test_dataset_dict.py     map, filter and the like, for several datasets at once
             test_hasher_digests.py   ours (extra/): equal bytes and digests under install() and after uninstall()
    caches   test_arrow_dataset.py    a quarter of its tests: caches, fingerprints, pickled datasets

The others read files, formats and the hub; test_fingerprint_tokenizer_stability.py needs transformers.
"""

from __future__ import annotations

from pathlib import Path

from compat._fetch import index_sdist, need
from compat._suite import STOCK, MissingInput, Suite
from compat.datasets.deselected import DESELECTED

VERSION = "5.2.0"
SHA256 = "f4290d4704dfbc99631a578b56912d66b22def53d3f61d246f6ccc129675490e"
"""Of datasets-5.2.0.tar.gz, as the package index has it."""

DILL_VERSION = "0.4.1"
"""The newest dill that this version of datasets knows (``datasets.utils._dill``); it asks for less than 0.4.2."""

MODES = {
    "installed": "fastpickle.install(), then datasets is imported",
    "installed-late": "datasets is imported, then fastpickle.install()",
}

_FILES = ("test_fingerprint.py", "test_py_utils.py", "test_dataset_dict.py", "test_arrow_dataset.py")


def prepare(source: Path | None) -> Suite:
    """Look for datasets in the environment, and fetch its tests.

    Args:
        source: must be None; the tests come from the package index.

    Returns:
        The suite.

    Raises:
        MissingInput: datasets, dill or what the tests need is missing, the tests cannot be had, or a source was given.
    """
    if source is not None:
        raise MissingInput("datasets takes no --source: its tests come from the package index")
    need("datasets", {"datasets": VERSION, "dill": DILL_VERSION, "absl-py": None, "pytest": None})
    folder = index_sdist("datasets", VERSION, SHA256)
    for file in _FILES:
        if not (folder / "tests" / file).exists():
            raise MissingInput(f"{folder} has no tests/{file}")
    return Suite(
        name="datasets",
        version=f"datasets {VERSION} with dill {DILL_VERSION}",
        modes=MODES,
        units=dict.fromkeys((STOCK, *MODES), ("caches", "hashes")),
        copy=folder,
        deselected=DESELECTED,
    )
