"""The fixtures that datasets' tests of pickling ask for; upstream's ``tests/conftest.py`` is not in its source.

    arrow_file                            a cache file with lists of strings and labels
    set_sqlalchemy_silence_uber_warning   nothing: no test here goes to a database

Each test has caches of its own, as upstream: a cache that an earlier test wrote would hide a changed hash.
"""

from __future__ import annotations

from pathlib import Path

import datasets
import pytest


@pytest.fixture(autouse=True)
def own_caches(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Move the caches to the test's own folder."""
    for name in ("HF_DATASETS_CACHE", "HF_MODULES_CACHE", "DOWNLOADED_DATASETS_PATH", "EXTRACTED_DATASETS_PATH"):
        if hasattr(datasets.config, name):
            monkeypatch.setattr(datasets.config, name, str(tmp_path / "caches" / name.lower()))


@pytest.fixture(scope="session")
def arrow_file(tmp_path_factory: pytest.TempPathFactory) -> str:
    """Write a dataset of ten rows to a file.

    Returns:
        The file's path.
    """
    path = str(tmp_path_factory.mktemp("arrow") / "rows.arrow")
    features = datasets.Features(
        {
            "tokens": datasets.List(datasets.Value("string")),
            "labels": datasets.List(datasets.ClassLabel(names=["no", "yes"])),
            "answers": {
                "text": datasets.List(datasets.Value("string")),
                "answer_start": datasets.List(datasets.Value("int32")),
            },
            "id": datasets.Value("int64"),
        }
    )
    rows = {
        "tokens": [["some", "words"]] * 10,
        "labels": [[0, 1]] * 10,
        "answers": [{"text": ["some"], "answer_start": [0]}] * 10,
        "id": list(range(10)),
    }
    datasets.Dataset.from_dict(rows, features=features).map(cache_file_name=path)
    return path


@pytest.fixture
def set_sqlalchemy_silence_uber_warning() -> None:
    """Do nothing."""
