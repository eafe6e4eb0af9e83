"""Functions met again: what is written of one is the same each time, as long as nothing that it is made of changes.

    encode(function) --+-- the first times: 0, it is counted
                       +-- met often enough: it is encoded for a `Template`, if there are only atoms in it
                       +-- from then on: by that, after a look at all that the encoding depends on

multiprocess and pathos send one function with each of thousands of tasks, and `dill.dumps` is called for each.  What is
to be found out about the pickler, and by the names of the function, is found out each time.

Not for: the code objects of functions that are made anew (`_dill_code`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from operator import attrgetter, is_
from types import CodeType, FunctionType
from typing import Any, Final
from weakref import ref

from dill import _dill

from .._stdlib import show_warnings_again
from ..engine.encoders import Encoder, Memo, NotBrief, Parts, Template
from ..hooks import ATOM_IDS, NUMBER_IDS, Plan
from ..objects.known import extension_registry
from ._dill_code import CATCHES_WARNINGS, arguments_of
from ._dill_known import entry_of

__all__ = ["Again"]

#: To make a template takes about four times as long as is gained by each use of it.
_OFTEN: Final = 4
#: So many functions are remembered.
_MOST: Final = 256
#: What is called to make a function again, each saved by its name.
_CALLED: Final = (_dill._create_function, _dill._create_code, _dill._create_cell, _dill._load_type)
_names_of: Final = attrgetter("__module__", "__qualname__")
_NAMES: Final = [*map(_names_of, _CALLED)]
_ATOMS_AND_CLASSES: Final = ATOM_IDS | {id(type)}


class Again:
    """The functions that have been met.

    Args:
        encode: encodes a function of which it is known what it is made of, and what is to be done when it is written:
            encode(parts, obj, args, state, memo, i, pieces).
        encode_dict: encodes its globals.
        is_usual: tells whether what fills the cells of functions is saved as by dill.
    """

    def __init__(self, encode: Callable[..., int], encode_dict: Encoder, is_usual: Callable[[Parts], bool]) -> None:
        self._encode = encode
        self._encode_dict = encode_dict
        self._is_usual = is_usual
        self._met: dict[int, _Met] = {}

    def encode(
        self,
        parts: Parts,
        obj: FunctionType,
        args: tuple[Any, ...],
        state: Any,
        memo: Memo,
        i: int,
        pieces: list[bytes],
    ) -> int:
        """Encode a function that is saved by value, if it has been met often enough.

        Args:
            parts: stands for a pickler, which has been looked at.
            obj: the function.
            args, state: what `save_function` gives for it now.
            memo, i, pieces: as for an `Encoder`.

        Returns:
            How many are in the memo then; 0 if nothing is done, and it is for the encoder.
        """
        key = id(obj)
        met = self._met.get(key)
        if met is None:
            if len(self._met) >= _MOST:
                self._met.clear()
            met = self._met[key] = _Met(ref(obj, lambda _: self._met.pop(key, None)))
        if met.times < _OFTEN:
            met.times += 1
            if met.times == _OFTEN and type(state) is tuple and self._is_as_usual(parts, args):
                self._learn(met, parts, obj, args, state)
            return 0
        template = met.template
        if (
            template is None
            or parts.plan is not met.plan
            or not memo.keys().isdisjoint(template.keys)  # which tells sooner than all else
            or type(state) is not tuple
            or not _are_same(_made_of(args, state), met.made_of)
            or not self._is_as_usual(parts, args)
            or (met.classes and not _are_named(parts, met.classes, met.names))
            or self._written_of(parts, args[1]) != met.globals
        ):
            return 0
        if CATCHES_WARNINGS:
            show_warnings_again()
        return template.encode(memo, i, pieces, obj)

    def _is_as_usual(self, parts: Parts, args: tuple[Any, ...]) -> bool:
        """Tell whether a function is saved by itself, and all that makes it again as by dill."""
        return (
            not parts.pickler._postproc
            and not extension_registry
            and _dill._CELL_REF is None
            and [*map(_names_of, _CALLED)] == _NAMES
            and (not args[-1] or self._is_usual(parts))
        )

    def _written_of(self, parts: Parts, its_globals: dict[str, Any]) -> list[bytes]:
        """Return what is written of the globals of a function, which are those of a module: nothing is memoized."""
        pieces: list[bytes] = []
        if self._encode_dict(parts, its_globals, {}, 0, pieces):
            raise NotBrief
        return pieces

    def _learn(self, met: _Met, parts: Parts, obj: FunctionType, args: tuple[Any, ...], state: tuple[Any, Any]) -> None:
        """Make a template of a function, if it can be had."""

        def encode(parts: Parts, obj: FunctionType, memo: Memo, i: int, pieces: list[bytes]) -> int:
            its_own = Parts(parts.pickler, parts.plan)
            its_own.known = parts.known
            args_anew, state_anew = (*args,), (state[0], {**state[1]})  # as they are for each dump
            return self._encode(its_own, obj, args_anew, state_anew, memo, i, pieces)

        made_of = _made_of(args, state)
        # Of its parts, and beside code and the dicts, all of which is in there, too.
        parts_of = [*(args[3] or ()), *[x for x in made_of[len(args) :] if type(x) is not dict]]
        classes = {id(x): x for x in parts_of if type(x) is type}
        names = [*map(_dill._typemap.get, classes.values())]
        if (
            parts.plan.rewrites is not None
            or None in names
            or not _are_named(parts, [*classes.values()], names)
            or not _ATOMS_AND_CLASSES.issuperset(map(id, map(type, parts_of)))
        ):
            return
        others: Memo = {}
        try:
            met.globals = self._written_of(parts, args[1])
            encode(parts, obj, others, 0, [])
            looked_for = [args[1], *_looked_for((None, args, parts_of))]
            template = Template(encode, parts, obj, looked_for, lambda x: id(x) not in others, is_for_plan=True)
        except (NotBrief, UnicodeEncodeError):
            return
        met.plan = parts.plan
        met.made_of = made_of
        met.classes = [*classes.values()]
        met.names = names
        met.template = template


class _Met:
    """A function that has been met.

    Attributes:
        ref: a reference to it, which takes this away when there is no such object any more.
        times: how often it has been met; when that is enough, something is found out about it.
        template: what is written of it; None if that is not the same each time.
        plan: the plan for which that is so.
        made_of: what it was made of then.
        classes: the classes in its annotations, each of which is saved by the name that dill has for it.
        names: those names.
        globals: what is written of its globals.
    """

    __slots__ = ("classes", "globals", "made_of", "names", "plan", "ref", "template", "times")

    def __init__(self, reference: ref[FunctionType]) -> None:
        self.ref = reference
        self.times = 0
        self.template: Template | None = None
        self.plan: Plan | None = None
        self.made_of: list[Any] = []
        self.classes: list[type] = []
        self.names: list[Any] = []
        self.globals: list[bytes] = []


def _made_of(args: tuple[Any, ...], state: tuple[Any, Any]) -> list[Any]:
    """Return all objects that make a difference to what is written: what changes has what is in it among them.

    Raises:
        ValueError: a cell is empty.
    """
    code, *_, closure = args
    its_dict, by_name = state
    made_of = [*args, code.co_filename, *by_name, *by_name.values(), its_dict]
    if closure:
        made_of += [cell.cell_contents for cell in closure]
    for x in (its_dict, *by_name.values()):
        if type(x) is dict and x:
            made_of += [*x, None, *x.values()]
    return made_of


def _are_named(parts: Parts, classes: list[type], names: list[Any]) -> bool:
    """Tell whether classes are saved by names that dill has for them."""
    return entry_of(parts, type) is _dill.save_type and [*map(_dill._typemap.get, classes)] == names


def _are_same(objs: list[Any], others: list[Any]) -> bool:
    return len(objs) == len(others) and all(map(is_, objs, others))


def _looked_for(objs: Iterable[Any]) -> Iterator[Any]:
    """Yield what is looked for in the memo but never put there, in a function's parts and in the tuples in them."""
    for x in objs:
        t = type(x)
        if t is CodeType:
            yield from _looked_for(arguments_of(x))
        elif (t is tuple or t is list) and x:
            yield from _looked_for(x)
        elif t is tuple or id(t) in NUMBER_IDS:
            yield x
