"""Show where two pickles differ: their opcodes around the first one that is not the same.

Not for: pickles that are the same.
"""

from __future__ import annotations

import io
import pickletools
from collections.abc import Iterator
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
    opcodes, opcodes_got = list(_disassemble(expected)), list(_disassemble(got))
    first = _first_difference(opcodes, opcodes_got, but_for=("FRAME",))
    if first is None:
        first = _first_difference(opcodes, opcodes_got) or 0
    return [
        f"bytes, from {at}: stock wrote {len(expected)} of them, ours {len(got)}",
        "  stock:",
        *_lines(opcodes, first),
        "  ours:",
        *_lines(opcodes_got, first),
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


def _first_difference(one: list[_Opcode], other: list[_Opcode], but_for: tuple[str, ...] = ()) -> int | None:
    """Find the first opcodes that differ; None if all are the same, as far as both go."""
    for i, ((_, name, argument), (_, name_got, argument_got)) in enumerate(zip(one, other, strict=False)):
        if (name, repr(argument)) != (name_got, repr(argument_got)) and name not in but_for:
            return i
    return None if len(one) == len(other) else min(len(one), len(other))


def _lines(opcodes: list[_Opcode], first: int) -> list[str]:
    return [
        f"  {position:8d} {name} {'' if argument is None else _repr.repr(argument)}".rstrip()
        for position, name, argument in opcodes[max(0, first - _AROUND) : first + _AROUND]
    ]
