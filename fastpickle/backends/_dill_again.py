"""Functions met again: what is written of one is the same each time, as long as nothing that it is made of changes.

    encode(function) --+-- the first times: 0, it is counted
                       +-- met often enough: it is encoded for a `Template`, if there are only atoms in it
                       +-- from then on: by that, after a look at all that the encoding depends on

multiprocess and pathos send one function with each of thousands of tasks, and `dill.dumps` is called for each.  What is
to be found out about the pickler, and by the names of the function, is found out each time.  Nothing is kept of a
function by which it could be reached: what may refer to it, its cells and dicts, is what it has then.

Not for: the code objects of functions that are made anew (`_dill_code`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from itertools import chain
from operator import attrgetter, is_
from types import CodeType, FunctionType
from typing import Any, Final
from weakref import ref

from dill import _dill

from .._stdlib import show_warnings_again
from ..engine.encoders import Encoder, Memo, NotBrief, Parts
from ..engine.template import Template
from ..hooks import ATOM_IDS, NUMBER_IDS, Plan
from ..objects.known import extension_registry
from ._dill_code import CATCHES_WARNINGS, arguments_of
from ._dill_known import entry_of, look_at

__all__ = ["Again"]

#: To make a template takes six times as long as is gained by each use of it.
_OFTEN: Final = 16
#: If it cannot be made, it is not tried again before so many more.
_PATIENCE: Final = 64
#: So many functions are remembered.
_MOST: Final = 256
#: What is called to make a function again, each saved by its name.
_CALLED: Final = (_dill._create_function, _dill._create_code, _dill._create_cell, _dill._load_type)
_names_of: Final = attrgetter("__module__", "__qualname__")
_NAMES: Final = [*chain.from_iterable(map(_names_of, _CALLED))]
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
        self._times: dict[int, int] = {}  # how often, by id: another function with that id is only learnt sooner
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
            times = self._times.get(key, 0) + 1
            if len(self._times) >= _MOST and times == 1:
                self._times.clear()
            self._times[key] = times
            if times == _OFTEN:
                if len(self._met) >= _MOST:
                    self._met.clear()
                met = self._learnt(parts, obj, args, state)
                if met is not None:
                    met.ref = ref(obj, lambda _: self._met.pop(key, None))
                    self._met[key] = met
                self._times[key] = 0 if met is not None else -_PATIENCE
            return 0
        if (
            parts.plan is not met.plan
            or not memo.keys().isdisjoint(met.template.keys)  # which tells sooner than all else
            or type(state) is not tuple
        ):
            return 0
        dicts = _dicts_of(state)
        given = _given(args, dicts, obj)
        made_of = _made_of(args, state, dicts)
        if (
            len(made_of) != len(met.made_of)
            or not all(map(is_, made_of, met.made_of))
            or len(given) != met.given
            or len({*map(id, given)}) != met.given
            or not memo.keys().isdisjoint(map(id, given))
            or not self._is_as_usual(parts, args, state, dicts)
            or self._written_of(parts, args[1]) != met.globals
            or not _are_named(parts, met.classes, met.names)
        ):
            return 0
        if CATCHES_WARNINGS:
            show_warnings_again()
        return met.template.append(memo, i, pieces, given)

    def _is_as_usual(
        self, parts: Parts, args: tuple[Any, ...], state: tuple[Any, Any], dicts: list[dict[Any, Any]]
    ) -> bool:
        """Tell whether a function is saved by itself, and all that makes it again as by dill."""
        main, _, length, length_of_main = parts.known or look_at(parts)
        for x in (state[1], *dicts):  # as a module's dict by reference
            if x is main or len(x) == length or len(x) == length_of_main or "__name__" in x:
                return False
        return (
            not parts.pickler._postproc
            and not extension_registry
            and _dill._CELL_REF is None
            and all(map(is_, chain.from_iterable(map(_names_of, _CALLED)), _NAMES))
            and (not args[-1] or self._is_usual(parts))
        )

    def _written_of(self, parts: Parts, its_globals: dict[str, Any]) -> list[bytes]:
        """Return what is written of the globals of a function, which are those of a module: nothing is memoized."""
        pieces: list[bytes] = []
        if self._encode_dict(parts, its_globals, {}, 0, pieces):
            raise NotBrief
        return pieces

    def _learnt(self, parts: Parts, obj: FunctionType, args: tuple[Any, ...], state: Any) -> _Met | None:
        """Return what there is to know of a function; None if it may not be the same each time."""
        if type(state) is not tuple:
            return None
        code = args[0]
        dicts = _dicts_of(state)
        given = _given(args, dicts, obj)
        made_of = _made_of(args, state, dicts)
        its_parts = [*(args[3] or ()), *made_of[_FIRST_PART:]]
        classes = [x for x in its_parts if type(x) is type]
        names = [*map(_dill._typemap.get, classes)]
        if (
            parts.plan.rewrites is not None
            or len({*map(id, given)}) != len(given)
            or CodeType in map(type, code.co_consts)  # each has a name of a file
            or not _ATOMS_AND_CLASSES.issuperset(map(id, map(type, its_parts)))
            or None in names
            or not _are_named(parts, classes, names)
            or not self._is_as_usual(parts, args, state, dicts)
        ):
            return None

        def encode(parts: Parts, obj: FunctionType, memo: Memo, i: int, pieces: list[bytes]) -> int:
            its_own = Parts(parts.pickler, parts.plan)
            its_own.known = parts.known
            args_anew, state_anew = (*args,), (state[0], {**state[1]})  # as they are for each dump
            return self._encode(its_own, obj, args_anew, state_anew, memo, i, pieces)

        others: Memo = {}
        try:
            written_of_globals = self._written_of(parts, args[1])
            encode(parts, obj, others, 0, [])
            looked_for = _looked_for((None, code, its_parts))
            template = Template(encode, parts, obj, looked_for, lambda x: id(x) not in others, given)
        except (NotBrief, UnicodeEncodeError):
            return None
        return _Met(parts.plan, template, made_of, len(given), classes, names, written_of_globals)


class _Met:
    """What is known of a function.

    Attributes:
        plan: the plan for which that is so.
        template: what is written of it.
        made_of: the atoms that it was made of then, its code, and the defaults.
        given: how many other parts it had.
        classes: the classes in its annotations, each of which is saved by the name that dill has for it.
        names: those names.
        globals: what is written of its globals.
        ref: a reference to it, which takes this away when there is no such object any more.
    """

    __slots__ = ("classes", "given", "globals", "made_of", "names", "plan", "ref", "template")

    def __init__(
        self,
        plan: Plan,
        template: Template,
        made_of: list[Any],
        given: int,
        classes: list[type],
        names: list[Any],
        its_globals: list[bytes],
    ) -> None:
        self.plan = plan
        self.template = template
        self.made_of = made_of
        self.given = given
        self.classes = classes
        self.names = names
        self.globals = its_globals
        self.ref: ref[FunctionType] | None = None


def _dicts_of(state: tuple[Any, Any]) -> list[dict[Any, Any]]:
    """Return a function's `__dict__`, annotations and defaults by keyword."""
    return [state[0], *[x for x in state[1].values() if type(x) is dict]]


def _given(args: tuple[Any, ...], dicts: list[dict[Any, Any]], obj: FunctionType) -> list[Any]:
    """Return what a function is made of that may refer to it, and itself: these are never kept."""
    closure = args[-1]
    return [obj, args[1], *dicts, closure, *closure] if closure else [obj, args[1], *dicts]


def _made_of(args: tuple[Any, ...], state: tuple[Any, Any], dicts: list[dict[Any, Any]]) -> list[Any]:
    """Return the code and the defaults, and what is in the others: each stays as it is while it is there.

    Raises:
        ValueError: a cell is empty.
    """
    code, _, name, defaults, closure = args
    made_of = [code, defaults, name, code.co_filename]
    for key, x in state[1].items():
        made_of += (key, None if type(x) is dict else x)
    for each in dicts:
        made_of += (*each, None, *each.values()) if each else (None,)
    if closure:
        made_of += [cell.cell_contents for cell in closure]
    return made_of


#: Of what `_made_of` returns: behind what is no atom, and no part of another one.
_FIRST_PART: Final = 2


def _are_named(parts: Parts, classes: list[type], names: list[Any]) -> bool:
    """Tell whether classes are saved by names that dill has for them."""
    return not classes or (
        entry_of(parts, type) is _dill.save_type and all(map(is_, map(_dill._typemap.get, classes), names))
    )


def _looked_for(objs: Iterable[Any]) -> Iterator[Any]:
    """Yield what is looked for in the memo but never put there, in a function's parts and in the tuples in them."""
    for x in objs:
        t = type(x)
        if t is CodeType:
            yield from _looked_for(arguments_of(x))
        elif (t is tuple or t is list or t is frozenset) and x:
            yield from _looked_for(x)
        elif t is tuple or id(t) in NUMBER_IDS:
            yield x
