"""What the table of speed-ups times of django-imagekit: the hash that names a cache file."""

from __future__ import annotations

import importlib
import os
from collections.abc import Callable
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from compat._realdata import RealData


def entries(data: RealData) -> dict[str, Callable[[], object]]:
    """Give the library's entry points.

    Args:
        data: what they are called with.

    Returns:
        The name as users write it -> a call without arguments that gives the digest.
    """
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "django.conf.global_settings")  # imagekit asks for some at import
    hashers = importlib.import_module("imagekit.hashers")
    return {"imagekit.hashers.pickle (records)": lambda: hashers.pickle(data.records)}
