"""Show where two pickles differ: their opcodes around the first byte that is not the same.

Not for: pickles that are the same.
"""

from __future__ import annotations

import io
import pickletools
from reprlib import Repr

__all__ = ["around_difference"]

_AROUND = 6
"""Opcodes that are shown on either side."""

_repr = Repr()
_repr.maxstring = _repr.maxother = 50


def around_difference(expected: bytes, got: bytes) -> list[str]:
    """Disassemble two pickles around the first byte in which they differ.

    Args:
        expected: what stock wrote; a part of a pickle, or several, will do.
        got: what was written instead.

    Returns:
        Lines.
    """
    shorter = min(len(expected), len(got))
    at = next((i for i in range(shorter) if expected[i] != got[i]), shorter)
    return [
        f"bytes, from {at}: expected {len(expected)} of them, got {len(got)}",
        "  expected:",
        *_disassemble(expected, at),
        "  got:",
        *_disassemble(got, at),
    ]


def _disassemble(written: bytes, at: int) -> list[str]:
    lines: list[str] = []
    first = 0
    try:
        for opcode, argument, position in pickletools.genops(io.BytesIO(written)):
            if position is not None and position <= at:
                first = len(lines)
            shown = "" if argument is None else _repr.repr(argument)
            lines.append(f"  {position:8d} {opcode.name} {shown}")
    except Exception as exc:  # a part of a pickle, or two of them
        lines.append(f"           ({exc})")
    return lines[max(0, first - _AROUND) : first + _AROUND]
