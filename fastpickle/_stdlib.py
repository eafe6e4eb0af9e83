"""What the running Python's ``pickle._Pickler`` is: its functions, and what differs by version.

    the stdlib's pickle --(captured here, once, at import)--> hooks, pickler, patch

Everything that differs from one Python to the next is decided here, by trying it out where that can be done, so that
no other module asks for a version.  The functions are captured as they were when fastpickle was imported: `install()`
puts others in their places, and the plain path must still find these.

Not for: anything that fastpickle does better.  Here is only what stock does.
"""

from __future__ import annotations

import _warnings
import gc
import inspect
import io
import os
import pickle
import re
import sys
import warnings
from collections.abc import Callable, Iterable
from opcode import opmap
from pickle import _Framer, _Pickler  # type: ignore[attr-defined]  # private, and the base of all we do
from types import FunctionType
from typing import Any, NoReturn

__all__ = [
    "ASKS_AGAIN",
    "ASKS_PERSISTENT_ID_ALWAYS",
    "BATCHSIZE",
    "FRAMES_ARE_BYTESIO",
    "HAS_KNOWN_BYTECODE",
    "HAS_NO_GIL",
    "LNOTAB_WARNS",
    "MAY_RUN_OUT_OF_STACK",
    "MEMOIZES_BUFFERS",
    "NOT_WRITTEN",
    "NO_VALUE",
    "PARTS_OF_METHODS",
    "TELLS_WHOSE",
    "UNTRACKED_DICTS_ARE_FLAT",
    "CPickler",
    "Framer",
    "StockPickler",
    "awkward_batches",
    "awkward_escapes",
    "batchsize_now",
    "c_dumps",
    "entry_of",
    "for_batch",
    "is_switched_off",
    "is_usual_file",
    "may_run_code",
    "memoized",
    "note",
    "note_value",
    "refuse_class",
    "refuse_reduce_value",
    "refuse_unreducible",
    "register_at_fork",
    "show_warnings_again",
    "stock_methods",
]

StockPickler: Any = _Pickler
Framer: Any = _Framer
#: How many items make a batch, unless a subclass says otherwise.
BATCHSIZE: int = StockPickler._BATCHSIZE

#: The methods of the stock class as they were at import, by name.
stock_methods: dict[str, Any] = {name: value for name, value in vars(StockPickler).items() if inspect.isfunction(value)}


def _frames_are_bytesio() -> bool:
    """Tell whether a frame is an `io.BytesIO` that `_Framer.write` fills, as on CPython (PyPy has a builder)."""
    framer = Framer(None)
    framer.start_framing()
    return type(framer.current_frame) is io.BytesIO and "write" in vars(StockPickler(io.BytesIO()))


FRAMES_ARE_BYTESIO: bool = _frames_are_bytesio()

#: What a file in memory raises that is as it was: it is closed, there is a memoryview of it, or it stands too far from
#: its end.  After a MemoryError it may have lost what was in it, and be closed.
NOT_WRITTEN = ValueError, BufferError, OverflowError

#: Whether an instruction by the name of one that `bytecode` knows does what that does: of a new Python somebody has to
#: find out.
HAS_KNOWN_BYTECODE: bool = sys.implementation.name == "cpython" and sys.version_info < (3, 16)


def _asks_persistent_id_always() -> bool:
    """Tell whether `save(pid, save_persistent_id=False)` still calls `persistent_id` (up to 3.13) or not (3.14)."""
    asked = []

    class Asked(StockPickler):  # type: ignore[misc]
        def persistent_id(self, obj: object) -> None:
            asked.append(obj)

    Asked(io.BytesIO()).save(None, save_persistent_id=False)
    return bool(asked)


ASKS_PERSISTENT_ID_ALWAYS: bool = _asks_persistent_id_always()


# The C pickler, and what it writes otherwise than the Python one (`graft`).


def _may_have_no_gil() -> bool:
    """Tell whether this is a free-threaded build, and was not started with the GIL switched on.

    Whether it is on at this moment says nothing: while an extension module is imported it always is.
    """
    return "free-threading build" in sys.version and sys.flags.gil != 1  # type: ignore[attr-defined]  # from 3.13 on


#: Whether another thread may change a list or dict while the C pickler reads it.  There it reads what is freed, and the
#: interpreter may crash, where the Python one goes on or raises RuntimeError: a dict (gh-146452) and a list (gh-146533,
#: gh-149816) in all of 3.13 and much of 3.14; and there may be more.
HAS_NO_GIL: bool = _may_have_no_gil()


def is_switched_off() -> bool:
    """Tell whether the C pickler is not to be used: FASTPICKLE_PURE says so, or says nothing where there may be no GIL.

    FASTPICKLE_PURE=0 says that no thread changes what another one dumps.
    """
    return (os.environ.get("FASTPICKLE_PURE") or ("1" if HAS_NO_GIL else "0")) != "0"


def _find_c_pickler() -> tuple[Any, Any]:
    """Return the C pickler's class and its dumps(); Nones if it is absent, switched off, or frames are not as it needs.

    The function is C's own, whatever `pickle.dumps` may be by now.
    """
    if is_switched_off() or not FRAMES_ARE_BYTESIO:
        return None, None
    try:
        from _pickle import Pickler, dumps  # noqa: PLC0415  # only where it is wanted
    except ImportError:
        return None, None
    return (Pickler, dumps) if hasattr(Pickler, "fast") and hasattr(Pickler, "memo") else (None, None)


#: The C pickler's class, and its dumps(); None where it is not to be used.
CPickler: Any
c_dumps: Callable[[Any, int], bytes]
CPickler, c_dumps = _find_c_pickler()


#: Whether the C pickler may run out of stack where it is small, or where `sys.setrecursionlimit` lets it go on (up to
#: 3.11 it goes by that, up to 3.13 by a number of its own; from 3.14 on the stack is measured).
MAY_RUN_OUT_OF_STACK: bool = sys.version_info < (3, 14)


def _differs(obj: object, protocol: int) -> bool:
    """Tell whether the C pickler and the Python one write `obj` otherwise."""
    files = io.BytesIO(), io.BytesIO()
    CPickler(files[0], protocol).dump(obj)
    StockPickler(files[1], protocol).dump(obj)
    return files[0].getvalue() != files[1].getvalue()


#: By the type of an exact container: the remainders by the batch size of the lengths, from that size on, at which C
#: ends it with another batch (up to 3.14: one item as a batch, or an empty one).
awkward_batches: dict[type, tuple[int, ...]] = {}
#: Finds in a pickle of protocol 0 what C may have fetched from the memo where Python writes it again (up to 3.12).
awkward_escapes: re.Pattern[bytes] | None = None


class _OfSmallBatches(StockPickler):  # type: ignore[misc]
    """Ends a container as stock does, a hundred times sooner: what ends it goes by the last batch."""

    _BATCHSIZE = 10


def _ending(pickler: Any, make: Any, remainder: int) -> bytes:
    """Return what `pickler` writes behind the last item of a container of two batches and so many items more."""
    n = 2 * getattr(pickler, "_BATCHSIZE", BATCHSIZE) + remainder  # C's has none of its own
    file = io.BytesIO()
    pickler(file, 4).dump(make(range(n)))
    return file.getvalue().rpartition(pickle.dumps(n - 1, 2)[2:-1])[2]


if CPickler is not None:
    for _type in (list, dict.fromkeys, set):
        _remainders = tuple(r for r in range(2) if _ending(CPickler, _type, r) != _ending(_OfSmallBatches, _type, r))
        if _remainders:
            awkward_batches[type(_type(()))] = _remainders
    _text = "\\\n\r\0\x1a"
    if _differs([_text, _text], 0):
        awkward_escapes = re.compile(rb"\\u00(?:5c|0a|0d|00|1a)")


def _untracked_dicts_are_flat() -> bool:
    """Tell whether a dict that the garbage collector does not track has no container in it but tuples of the like.

    So it is up to 3.13, where it is tracked from the first other one on; in 3.13.0 not if that is set as an attribute.
    """

    class Instance:
        pass

    instances = [Instance() for _ in range(64)]
    for x in instances:
        x.a = ()  # type: ignore[attr-defined]  # it has any
    dicts = [*map(vars, instances)]
    if any(map(gc.is_tracked, dicts)):
        return False
    for x in instances:  # so often that the instruction is specialised
        x.a = []  # type: ignore[attr-defined]  # it has any
    return all(map(gc.is_tracked, dicts)) and [*map(gc.is_tracked, ({"": ()}, {"": []}))] == [False, True]


UNTRACKED_DICTS_ARE_FLAT: bool = CPickler is not None and _untracked_dicts_are_flat()


def _visits_memo() -> bool:
    """Tell whether the garbage collector is told of the objects in a C pickler's memo (from 3.11 on)."""
    memoized: list[int] = []
    pickler = CPickler(io.BytesIO(), 4)
    pickler.dump(memoized)
    return any(x is memoized for x in gc.get_referents(pickler))


if CPickler is not None and _visits_memo():

    def memoized(c_pickler: Any) -> list[Any]:
        """Return the objects that a C pickler has memoized, and others that it refers to; 30 ns for each."""
        return gc.get_referents(c_pickler)

else:

    def memoized(c_pickler: Any) -> list[Any]:
        """Return the objects that a C pickler has memoized; 300 ns for each."""
        return [x for _, x in c_pickler.memo.copy().values()]


def _memoizes_buffers() -> bool:
    """Tell whether the Python pickler memoizes a buffer that it writes in the pickle, as C does, and no copy of it."""
    buffer = pickle.PickleBuffer(bytearray(b"buffer"))
    pickler = StockPickler(io.BytesIO(), 5)
    pickler.dump(buffer)
    return any(x is buffer for _, x in pickler.memo.values())


MEMOIZES_BUFFERS: bool = hasattr(pickle, "PickleBuffer") and _memoizes_buffers()


# From 3.14 on an exception that passes through a container gets a note that says where it was (gh-122311).


class _Unpicklable:
    def __reduce__(self) -> str:
        raise LookupError


def _adds_notes() -> bool:
    """Tell whether stock adds notes to an exception that passes through a container."""
    try:
        StockPickler(io.BytesIO()).dump([_Unpicklable()])
    except LookupError as exc:
        return bool(getattr(exc, "__notes__", ()))
    raise AssertionError("not reached")


if _adds_notes():
    _type_name = pickle._T  # type: ignore[attr-defined]

    def note(exc: BaseException, obj: object, *what: object) -> None:
        """Say in `exc` in which part of `obj` it was raised: note(exc, obj, "item", 3)."""
        exc.add_note(f"when serializing {_type_name(obj)} {' '.join(map(str, what))}")  # type: ignore[attr-defined]

    def note_value(exc: BaseException, obj: object, key: object) -> None:
        """Say in `exc` that it was raised while the value of `key` in the dict `obj` was saved."""
        note(exc, obj, "item", repr(key))

else:

    def note(exc: BaseException, obj: object, *what: object) -> None:
        """Do nothing: this Python's stock pickler adds no notes."""

    def note_value(exc: BaseException, obj: object, key: object) -> None:
        """Do nothing: this Python's stock pickler adds no notes."""


# From 3.14 on `_batch_appends` and `_batch_setitems` are told whose items they save, for those notes.

#: Whether they are.
TELLS_WHOSE: bool = "obj" in inspect.signature(stock_methods["_batch_appends"]).parameters

if TELLS_WHOSE:

    def for_batch(items: Iterable[Any], obj: object) -> tuple[Any, ...]:
        """Return the arguments that `_batch_appends` and `_batch_setitems` take."""
        return items, obj

else:

    def for_batch(items: Iterable[Any], obj: object) -> tuple[Any, ...]:
        """Return the arguments that `_batch_appends` and `_batch_setitems` take."""
        return (items,)


# How many items make a batch is asked for each batch up to 3.13, and once for a container from 3.14 on.

#: Whether stock asks an iterator once more after a batch that was not full (from 3.14 on): a deque's may raise then.
ASKS_AGAIN: bool = "batched" in vars(pickle)

#: The methods that stock calls for a part of what another one of its methods does, in newer Pythons.
PARTS_OF_METHODS: tuple[str, ...] = tuple(
    name
    for name in ("_save_bytes_no_memo", "_save_bytearray_no_memo", "_save_toplevel_by_name")
    if hasattr(StockPickler, name)
)

if ASKS_AGAIN:

    def batchsize_now(pickler: Any, size: int) -> int:
        """Return the size of the next batch, where a hook may have changed it since `size` was asked for."""
        return size

else:

    def batchsize_now(pickler: Any, size: int) -> int:
        """Return the size of the next batch, where a hook may have changed it since `size` was asked for."""
        return int(pickler._BATCHSIZE)


# What a reduce gives is checked by stock, so that its errors are the running Python's.

#: What stock takes for "there is none" in a lookup: an object of its own from 3.13 on, None before.
NO_VALUE: Any = getattr(pickle, "_NoValue", None)


if NO_VALUE is None:

    def entry_of(dispatch_table: Any, t: type) -> Any:
        """Look a type up in a `dispatch_table`, which may be of any class, in stock's way."""
        return dispatch_table.get(t)

else:

    def entry_of(dispatch_table: Any, t: type) -> Any:
        """Look a type up in a `dispatch_table`, which may be of any class, in stock's way."""
        return dispatch_table.get(t, NO_VALUE)


class _Replay:
    """Stands for a reduce that has been called: gives its value again, and shows itself as it."""

    def __init__(self, reduce: Any, value: Any) -> None:
        self._reduce = reduce
        self._value = value

    def __call__(self, obj: object) -> Any:
        return self._value

    def __repr__(self) -> str:
        return repr(self._reduce)

    def __str__(self) -> str:
        return str(self._reduce)


def refuse_reduce_value(obj: object, reduce: Any, value: Any) -> NoReturn:
    """Raise what stock raises if `reduce`, called for `obj`, gives a `value` that is no string and no tuple of 2 to 6.

    Raises:
        PicklingError: always, with stock's message and notes.
    """
    pickler = StockPickler(io.BytesIO())
    pickler.reducer_override = _Replay(reduce, value)
    stock_methods["save"](pickler, obj)
    raise AssertionError(f"stock takes {value!r} from a reduce")


def refuse_class(func: Any, args: tuple[Any, ...], obj: object, told: Any) -> NoReturn:
    """Raise what stock raises if an object says to be of another class than its reduce gave to `copyreg.__newobj__`.

    Args:
        func, args: what its reduce gave.
        obj: the object.
        told: what its `__class__` was, the one time that it has been asked for so far.

    Raises:
        PicklingError: always, with stock's message.
    """
    stock_methods["save_reduce"](StockPickler(io.BytesIO(), 4), func, args, obj=_Told(obj, told))
    raise AssertionError(f"stock takes {told!r} for the class of {obj!r}")


class _Told:
    """Stands for an object that has been asked for its class: says that, and then what the object says."""

    def __init__(self, obj: object, told: Any) -> None:
        self._obj = obj
        self._told = [told]

    @property  # type: ignore[misc]  # typeshed lets it be set
    def __class__(self) -> Any:
        return self._told.pop() if self._told else self._obj.__class__


def refuse_unreducible(obj: object) -> BaseException:
    """Return what stock raises for an object that has neither `__reduce_ex__` nor `__reduce__`."""
    try:
        stock_methods["save"](StockPickler(io.BytesIO()), obj)
    except BaseException as exc:
        return exc
    raise AssertionError("stock can reduce it")


# From 3.14 on a function's annotations are computed when they are asked for, by another function (PEP 649).


def _annotated(x: int) -> None:
    """Have annotations, for the compiler to make the function of."""


def _begins_annotations() -> bytes:
    """Return with which opcodes such a function begins: it takes one format of three."""
    function: Any = _annotated
    code: bytes = function.__annotate__.__code__.co_code
    return code[: code[::2].index(opmap["LOAD_CONST"]) * 2]


_FunctionType: Any = FunctionType  # it has attributes that mypy may not know

if hasattr(_annotated, "__annotate__"):
    _BEGINS_ANNOTATIONS = _begins_annotations()
    _LOADS = ("LOAD_CONST", "LOAD_COMMON_CONSTANT", "LOAD_SMALL_INT", "LOAD_FROM_DICT_OR_")
    #: Which opcodes look up names in exact dicts, and put what is found into a dict, by text; 0 is what they cache.
    _LOOK_UPS = frozenset(
        (
            0,
            *[opmap[name] for name in ("BUILD_MAP", "EXTENDED_ARG", "LOAD_DEREF", "LOAD_GLOBAL", "RETURN_VALUE")],
            *[opmap[name] for name in opmap if name.startswith(_LOADS)],
        )
    )

    def may_run_code(function: FunctionType) -> bool:
        """Tell whether somebody's code may run if a function's annotations are asked for."""
        annotate: Any = getattr(function, "__annotate__", None)
        if annotate is None:
            return False
        if (
            type(annotate) is not _FunctionType
            or type(annotate.__globals__) is not dict
            or type(annotate.__builtins__) is not dict
        ):
            return True
        code = annotate.__code__
        opcodes = code.co_code
        if code.co_freevars:
            opcodes = opcodes[2:]  # COPY_FREE_VARS
            try:
                for name, cell in zip(code.co_freevars, annotate.__closure__ or (), strict=True):
                    if name == "__classdict__" and type(cell.cell_contents) is not dict:
                        return True
            except ValueError:  # it is empty
                return True
        return not opcodes.startswith(_BEGINS_ANNOTATIONS) or not _LOOK_UPS.issuperset(
            opcodes[len(_BEGINS_ANNOTATIONS) :: 2]
        )

else:

    def may_run_code(function: FunctionType) -> bool:
        """Tell whether somebody's code may run if a function's annotations are asked for."""
        return False


#: Whether a code object that is asked for `co_lnotab` warns that it will go.
LNOTAB_WARNS: bool = sys.version_info >= (3, 12)

# `warnings.catch_warnings()` has it that what was shown once is shown again; that takes 3 us, or a function of its own.

_c_warnings: Any = _warnings  # these are no public names
_show_again: Any = getattr(_warnings, "_filters_mutated", None)
_show_again_locked: Any = getattr(_warnings, "_filters_mutated_lock_held", None)

if _show_again is not None:
    show_warnings_again = _show_again

elif _show_again_locked is not None:

    def show_warnings_again() -> None:
        """Let warnings that were shown once be shown again, as a `catch_warnings()` does when it ends."""
        _c_warnings._acquire_lock()  # from 3.14 on
        try:
            _show_again_locked()
        finally:
            _c_warnings._release_lock()

else:

    def show_warnings_again() -> None:
        """Let warnings that were shown once be shown again, as a `catch_warnings()` does when it ends."""
        with warnings.catch_warnings():
            pass


# Processes: Windows does not fork.

register_at_fork: Callable[..., None] = getattr(os, "register_at_fork", lambda **functions: None)


# Files.


def is_usual_file(file: Any) -> bool:
    """Tell whether nobody's code sees how much is written at a time: it is in memory, or goes to a real file."""
    t = type(file)
    return issubclass(t, io.BytesIO) or (
        issubclass(t, (io.BufferedWriter, io.BufferedRandom))
        and type(raw := file.raw) is io.FileIO
        and raw.__dict__.keys() <= _SET_BY_OPEN  # no `write` of somebody's
    )


_SET_BY_OPEN: frozenset[str] = frozenset(("name",))
