"""Show where two pickles differ: their opcodes around the first one that is not the same.

Not for: pickles that are the same.
"""

from __future__ import annotations

import io
import pickletools
from collections import deque
from collections.abc import Iterator
from itertools import islice, zip_longest
from reprlib import Repr

__all__ = ["around_difference"]

_AROUND = 6
"""Opcodes that are shown on either side."""

_repr = Repr()
_repr.maxstring = _repr.maxother = 50


def around_difference(expected: bytes, got: bytes) -> list[str]:
    """Disassemble two pickles around the first opcode in which they differ.

    Args:
        expected: what stock wrote; a part of a pickle, or several, will do.
        got: what was written instead.

    Returns:
        Lines. How long a frame is counts only if nothing else differs.
    """
    shorter = min(len(expected), len(got))
    at = next((i for i in range(shorter) if expected[i] != got[i]), shorter)
    shown = _around_opcodes(_disassemble(expected), _disassemble(got))
    return [
        f"bytes, from {at}: stock wrote {len(expected)} of them, ours {len(got)}",
        "  stock:",
        *map(_line, shown[0]),
        "  ours:",
        *map(_line, shown[1]),
    ]


_Opcode = tuple[int, str, object]
"""Its position, its name and its argument."""


def _disassemble(written: bytes) -> Iterator[_Opcode]:
    """Give the opcodes of a pickle, and what is wrong with it in the place of one."""
    file = io.BytesIO(written)
    try:
        while file.tell() < len(written):
            for opcode, argument, position in pickletools.genops(file):
                yield position or 0, opcode.name, argument
    except Exception as exc:  # a part of a pickle
        yield len(written), f"({exc})", None


def _around_opcodes(one: Iterator[_Opcode], other: Iterator[_Opcode]) -> tuple[list[_Opcode], list[_Opcode]]:
    """Give the opcodes of both before and from the first ones that differ: of frames only if nothing else does."""
    before: deque[tuple[_Opcode, _Opcode]] = deque(maxlen=_AROUND)
    of_frames: list[tuple[_Opcode, _Opcode]] = []
    for opcode, opcode_got in zip_longest(one, other):
        if opcode is None or opcode_got is None or not _are_same(opcode, opcode_got):
            if opcode and opcode_got and opcode[1] == opcode_got[1] == "FRAME":
                of_frames = of_frames or [*before, (opcode, opcode_got)]
            else:
                sides = [*before, (opcode, opcode_got), *islice(zip_longest(one, other), _AROUND - 1)]
                break
        before.append((opcode, opcode_got))
    else:
        sides = [*of_frames]
    return [side[0] for side in sides if side[0]], [side[1] for side in sides if side[1]]


def _are_same(one: _Opcode, other: _Opcode) -> bool:
    return one[1] == other[1] and (one[2] is other[2] or repr(one[2]) == repr(other[2]))


def _line(opcode: _Opcode) -> str:
    position, name, argument = opcode
    return f"  {position:8d} {name} {'' if argument is None else _repr.repr(argument)}".rstrip()
