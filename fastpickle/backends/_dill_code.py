"""Code objects as dill saves them: what is written of one is the same each time, but for the memo.

    encode_code(code) --+-- first met: _create_code(...) of what `save_code` gives
                        +-- then on:   the same, the arguments by a `Template`, if they are atoms and tuples of atoms

A closure that is sent to many workers has one code object, which is a third of what there is to encode of it.

Not for: what else a function is made of (`_dill_functions`).
"""

from __future__ import annotations

from collections.abc import Iterator
from types import CodeType
from typing import Any, Final
from weakref import ref

from dill import _dill

from .._stdlib import LNOTAB_WARNS, show_warnings_again
from ..engine.encoders import Memo, NotBrief, Parts, encode_callable, encode_tuple, end_call
from ..engine.template import Template
from ..hooks import ATOM_IDS, NUMBER_IDS
from ._dill_known import given_by, look_at

__all__ = ["CATCHES_WARNINGS", "WARNS", "arguments_of", "encode_code"]


def encode_code(parts: Parts, obj: Any, memo: Memo, i: int, pieces: list[bytes]) -> int:
    """Encode a code object as `save_code` saves it, as an `Encoder` does."""
    parts.known or look_at(parts)
    i = encode_callable(parts, _dill._create_code, memo, i, pieces)
    met = _met.get(id(obj))
    if met is None:
        met = _met[id(obj)] = _Met(obj)
    k = 0
    template = met.template_for(parts, obj)
    if template is not None:
        if CATCHES_WARNINGS:
            show_warnings_again()
        k = template.encode(memo, i, pieces)
    return end_call(obj, memo, k or encode_tuple(parts, arguments_of(obj), memo, i, pieces), pieces)


#: Whether `save_code` has them shown again: where there are exception tables, it catches what `co_lnotab` may warn of.
CATCHES_WARNINGS: Final = (
    hasattr(CodeType, "co_exceptiontable") and "catch_warnings" in _dill.save_code.__code__.co_names
)
#: Whether `save_code` has the warning shown, each time that it is called: dill 0.3.6, on Pythons that came later.
WARNS: Final = LNOTAB_WARNS and not CATCHES_WARNINGS

_save_code: Final = _dill.save_code  # what the dispatch table has, whatever comes to stand under that name


def arguments_of(code: CodeType) -> tuple[Any, ...]:
    """Return what `save_code` calls `_create_code` with."""
    return given_by(_save_code, code)[1]


class _Met:
    """A code object that has been met.

    Attributes:
        ref: a reference to it, which takes this away when there is no such object any more.
        times: how often it has been met; when that is enough, something is found out about it.
        filename: its `co_filename` then, which an import may change.
        template: a template for what `save_code` gives, if that has only atoms in it, and tuples.
    """

    __slots__ = ("filename", "ref", "template", "times")

    def __init__(self, code: CodeType) -> None:
        key = id(code)
        self.ref = ref(code, lambda _: _met.pop(key, None))
        self.times = 0
        self.filename: str | None = None
        self.template: Template | None = None

    def template_for(self, parts: Parts, code: CodeType) -> Template | None:
        """Return the template, if there is one; it is made when the code object has been met often enough."""
        if self.times < _OFTEN:
            self.times += 1
            if self.times == _OFTEN:
                self._learn(parts, code)
        return self.template if self.filename is code.co_filename else None

    def _learn(self, parts: Parts, code: CodeType) -> None:
        """Make a template, if it can be had."""
        args = arguments_of(code)
        try:
            unmemoized = [*_unmemoized_in(args)]
            anew = {id(x) for x, y in zip((args, *args), ((), *arguments_of(code)), strict=True) if x is not y}
            self.template = Template(encode_tuple, parts, args, unmemoized, lambda x: id(x) in anew)
            self.filename = code.co_filename
        except NotBrief:
            return


#: To make a template takes about three times as long as is gained by each use of it.
_OFTEN: Final = 3


def _unmemoized_in(args: tuple[Any, ...]) -> Iterator[Any]:
    """Yield what is looked for in the memo but never put there, in a tuple, and in the tuples in it.

    Raises:
        NotBrief: there is anything but atoms in them.
    """
    for x in args:
        if type(x) is tuple and x:
            yield from _unmemoized_in(x)
        elif id(type(x)) in NUMBER_IDS or type(x) is tuple:  # an empty one
            yield x
        elif id(type(x)) not in ATOM_IDS:
            raise NotBrief


#: By their ids, since the hash of a code object takes as long as all of this.
_met: Final[dict[int, _Met]] = {}
