"""fastpickle.backends.cloudpickle against the same reducers on pickle._Pickler."""

from __future__ import annotations

import importlib.util
import io
import pickle
import sys
from typing import Any

import pytest
from oracle import objects, samples, strategies
from oracle.compare import Implementation
from oracle.suite_evil import EvilSuite
from oracle.suite_hooks import HookSuite
from oracle.suite_values import Suite, ValueSuite

if importlib.util.find_spec("cloudpickle") is None:
    pytest.skip("cloudpickle is not installed", allow_module_level=True)

from fastpickle.backends import cloudpickle as backend  # isort: skip

import cloudpickle  # after the backend, without which PyPy 8 cannot import it

_Library: Any = cloudpickle.Pickler

if issubclass(_Library, pickle._Pickler):  # type: ignore[attr-defined]
    Pickler = _Library  # PyPy

else:

    class Pickler(pickle._Pickler):  # type: ignore[name-defined, misc, no-redef]
        """cloudpickle's reducers on the stock class."""

        dispatch_table = _Library.dispatch_table
        reducer_override = _Library.reducer_override
        _dynamic_function_reduce = _Library._dynamic_function_reduce
        _function_reduce = _Library._function_reduce
        _function_getnewargs = _Library._function_getnewargs

        def __init__(self, file: Any, protocol: Any = None, buffer_callback: Any = None) -> None:
            super().__init__(
                file, pickle.HIGHEST_PROTOCOL if protocol is None else protocol, buffer_callback=buffer_callback
            )
            self.globals_ref: dict[int, Any] = {}

        def dump(self, obj: Any) -> None:
            try:
                super().dump(obj)
            except RecursionError as exc:
                message = "Could not pickle object as excessively deep recursion required."
                raise pickle.PicklingError(message) from exc


class Backend:
    breadth = 1
    oracle = Implementation("cloudpickle's reducers on pickle._Pickler", Pickler)
    ours = Implementation("fastpickle.backends.cloudpickle.Pickler", backend.Pickler)


def make_function(n: int) -> Any:
    data = [n, "text"]

    def inner(k: int = 1, *, key: Any = (1, 2)) -> Any:
        return inner(k - 1) if k else (data, objects.make, cloudpickle)

    return inner


class CloudpickleSuite(Suite):
    """What only cloudpickle has."""

    def test_functions(self) -> None:
        """Lambdas, closures, recursive functions and partials."""
        self.check_object(lambda: 1, protocols=(2, 4, 5))
        function = make_function(3)
        self.check_object(
            [function, function, {"f": function}, make_function, function.__code__, sys], protocols=(2, 4, 5)
        )

    def test_classes(self) -> None:
        """The state of a class by value: the class tracker gives it one id, whoever asks."""

        class Local:
            x = [1]

            def method(self) -> Any:
                return Local, self.x

        backend.dumps(Local())  # the first dump of an instance lets copyreg add to the class
        self.check_object(Local, protocols=(4, 5))
        self.check_object([Local, Local(), {"c": Local}, [Local() for _ in range(5)]], protocols=(4, 5))

    @pytest.mark.parametrize("name", ["nested", "instances", "library", "names", "shared"])
    def test_dumps(self, name: str) -> None:
        """The functions of the module, which load like cloudpickle's own."""
        obj = samples.SAMPLES[name]()

        def function() -> int:
            return 5

        file = io.BytesIO()
        Pickler(file).dump(obj)
        assert backend.dumps(obj) == file.getvalue()
        other = io.BytesIO()
        backend.dump(obj, other)
        assert other.getvalue() == file.getvalue()
        assert backend.loads(backend.dumps([1, {"a": function}]))[1]["a"]() == 5


def test_cloudpickle_can_be_imported_again() -> None:
    """The class that stood in for `pickle.Pickler` while the backend imported it stands there no more."""
    assert cloudpickle.loads(cloudpickle.dumps(lambda: 5))() == 5
    assert pickle.Pickler is not pickle._Pickler  # type: ignore[attr-defined]


class TestCloudpickle(Backend, CloudpickleSuite):
    pass


class TestValues(Backend, ValueSuite):
    pass


if strategies.is_thorough():

    class TestHooks(Backend, HookSuite):
        pass

    class TestEvil(Backend, EvilSuite):
        pass
