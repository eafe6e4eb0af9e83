"""pickle._Pickler under fastpickle.patched() against itself without."""

from __future__ import annotations

import pickle
from typing import Any

from oracle.compare import Implementation
from oracle.suite_evil import EvilSuite
from oracle.suite_hooks import HookSuite
from oracle.suite_values import BufferSuite, ValueSuite

import fastpickle

_Stock: Any = pickle._Pickler  # type: ignore[attr-defined]


class Installed:
    oracle = Implementation("pickle._Pickler", _Stock)
    ours = Implementation("pickle._Pickler, installed", _Stock, fastpickle.patched)


class TestValues(Installed, ValueSuite):
    pass


class TestBuffers(Installed, BufferSuite):
    pass


class TestHooks(Installed, HookSuite):
    pass


class TestEvil(Installed, EvilSuite):
    pass
