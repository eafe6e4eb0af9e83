"""Of which of dill's functions it is known what they do: told by dill's version, and in any other by their source.

    are_known(name, ...) --+-- a version that has been read --> whether they are dill's own
                           +-- one to come, a fork -----------> that, and whether each has the source that has been read

Most of dill's functions are the same from one version to the next: those that plain data goes through are, but for a
condition, since 0.3.6.  So what is known of a function holds wherever it is the same, whatever became of the others.

Not for: finding out what somebody has put in the place of dill's functions since (`_dill_own`, `_dill_known`).
"""

from __future__ import annotations

import sys
from functools import cache
from operator import attrgetter
from types import FunctionType
from typing import Final

import dill
from dill import _dill

from ._source import digests

__all__ = ["FUNCTIONS", "IS_READ", "KNOWN_VERSIONS", "NAMES", "PLAIN_DATA", "are_known"]

#: The versions all of whose functions are known to do what is said of them here.
KNOWN_VERSIONS: Final = ("0.3.6", "0.3.7", "0.3.8", "0.3.9", "0.4.0", "0.4.1")
#: Whether this is one of them.
IS_READ: Final = dill.__version__ in KNOWN_VERSIONS

#: What plain data goes through; the other functions are for classes, functions, modules.
PLAIN_DATA: Final = (
    "Pickler.dump", "Pickler.save", "MetaCatchingDict.get", "MetaCatchingDict.__missing__", "save_module_dict",
    "is_dill", "numpyufunc", "numpydtype", "ndarraysubclassinstance", "logger.trace_setup", "logger.trace",
)  # fmt: skip
#: What a class or function is found by.
NAMES: Final = ("_locate_function", "_import_module", "_getattribute")
#: What a function goes through that is saved by value.
FUNCTIONS: Final = (
    *NAMES, "save_function", "save_type", "save_code", "save_cell", "save_module", "save_property", "save_classmethod",
    "save_instancemethod0", "_is_builtin_module", "_save_with_postproc", "_shims.Reduce.__reduce__",
    "_shims.Reduce.__reduce_ex__",
)  # fmt: skip


def are_known(*names: str) -> bool:
    """Tell whether functions are dill's own, and known to do what is said of them here.

    Args:
        names: each of a function in `dill._dill`, or of a method there: "Pickler.save".
    """
    return all(map(_is_known, names))


@cache
def _is_known(name: str) -> bool:
    try:
        function = attrgetter(name)(_dill)
    except AttributeError:
        return False
    function = getattr(function, "__func__", function)
    if type(function) is not FunctionType or not any(function.__globals__ is home for home in _HOMES):
        return False
    return IS_READ or digests(function)[0] in _AS_READ.get(name, ())


#: Where dill's functions are at home.
_HOMES: Final = [
    vars(sys.modules[name]) for name in ("dill._dill", "dill._shims", "dill.logger") if name in sys.modules
]

#: Their sources in 0.4.1, by their digests, and in any other version in which they do the same; of three there is
#: another one where there is no numpy.
_AS_READ: Final = {
    "Pickler.__init__": ("69340b8af5b7fdd9",),
    "Pickler.dump": ("cc2a669c9d456d01",),
    "Pickler.save": ("93cef687a0871ae4",),
    "MetaCatchingDict.get": ("3d199d3b5a2ac848",),
    "MetaCatchingDict.__missing__": ("3754066925137e3c",),
    "is_dill": ("d2022dd4e121e138",),
    "save_module_dict": ("b7a309cabfbd5333",),
    "numpyufunc": ("eef807bc39dc59b9", "8568911974b50e2d"),
    "numpydtype": ("ba5b279ba5a82b87", "236e8e4b5e482807"),
    "ndarraysubclassinstance": ("817948b354a9bb22", "005739605d96fbc4"),
    "logger.trace_setup": ("9834b528593b030d",),
    "logger.trace": ("2f2546f08c83244f",),
    "dump": ("eb406c0b7c38e6d1",),
    "save_type": ("f7d081bd61adc9cc",),
    "save_function": ("5bd4edfa033a72c3",),
    "_locate_function": ("6560ee9b73cf46af",),
    "_import_module": ("e0e52eb3108486de",),
    "_getattribute": ("092fc7946438a8e6",),
    "save_singleton": ("4f75af004c4b7292",),
    "save_slice": ("651ddd2a776f15b5",),
    "_save_with_postproc": ("2a3dcf72fc399e08",),
    "save_code": ("3121ab35ab952017",),
    "save_cell": ("f9cdcc7a2df56845",),
    "save_module": ("0d8d6819a0f5fc09",),
    "_is_builtin_module": ("d4d51764c65357cc",),
    "save_property": ("4c37237fad53f54e",),
    "save_classmethod": ("c6a73cfb828ad057",),
    "save_instancemethod0": ("0ddab93c540973e8",),
    "_shims.Reduce.__reduce__": ("93756c06e84f75b7",),
    "_shims.Reduce.__reduce_ex__": ("cc9031cd3b01b91b",),
}
