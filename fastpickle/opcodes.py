"""Tables of opcodes with their arguments already packed, built once at import.

Stock packs the argument of every opcode anew (``BININT1 + pack("<B", n)``).  Where the argument is one byte there are
only 256 of them, so they are looked up here; the others have their `struct.Struct` compiled.

Not for: deciding which opcode an object gets.  That is for `engine.loop`, `engine.columns` and `engine.encoders`.
"""

from __future__ import annotations

import pickle
from struct import Struct, pack
from typing import Final

__all__ = [
    "BINGET",
    "BININT1",
    "BINPUT",
    "MARKED_DICT",
    "MARKED_LIST",
    "MEMOIZED_DICT",
    "MEMOIZED_LIST",
    "MEMOIZED_TUPLE",
    "MEMOIZED_TUPLES",
    "SHORT_BINBYTES",
    "SHORT_BINUNICODE",
    "TUPLES",
    "pack_binbytes",
    "pack_binfloat",
    "pack_binint",
    "pack_binint2",
    "pack_binunicode",
    "pack_bytearray8",
    "pack_long",
    "pack_long_binget",
    "pack_long_binput",
]


def _with_one_byte(opcode: bytes) -> tuple[bytes, ...]:
    """Return the opcode with each of the 256 one-byte arguments; ~9 KiB, where packing each time costs ~60 ns."""
    return tuple(opcode + bytes((n,)) for n in range(256))


BININT1: Final = _with_one_byte(pickle.BININT1)
BINGET: Final = _with_one_byte(pickle.BINGET)
BINPUT: Final = _with_one_byte(pickle.BINPUT)
SHORT_BINUNICODE: Final = _with_one_byte(pickle.SHORT_BINUNICODE)
SHORT_BINBYTES: Final = _with_one_byte(pickle.SHORT_BINBYTES)

# From protocol 4 on: what a container begins with, if it has one item at the most, or more; and what ends a tuple, one
# of up to three items by their number, or a longer one.
MEMOIZED_LIST: Final = pickle.EMPTY_LIST + pickle.MEMOIZE
MARKED_LIST: Final = MEMOIZED_LIST + pickle.MARK
MEMOIZED_DICT: Final = pickle.EMPTY_DICT + pickle.MEMOIZE
MARKED_DICT: Final = MEMOIZED_DICT + pickle.MARK
#: What makes a tuple of so many items, of one to three.
TUPLES: Final = (b"", pickle.TUPLE1, pickle.TUPLE2, pickle.TUPLE3)
MEMOIZED_TUPLES: Final = (b"", *(opcode + pickle.MEMOIZE for opcode in TUPLES[1:]))
MEMOIZED_TUPLE: Final = pickle.TUPLE + pickle.MEMOIZE

# Each is called as pack(opcode, argument) and raises struct.error just where stock's own pack does.
pack_binint2: Final = Struct("<cH").pack
pack_binint: Final = Struct("<ci").pack
pack_binfloat: Final = Struct(">cd").pack
pack_binunicode = pack_binbytes = pack_long_binget = pack_long_binput = Struct("<cI").pack
pack_bytearray8: Final = Struct("<cQ").pack


def pack_long(x: int) -> bytes:
    """Return the opcode of an int that does not fit into four bytes, from protocol 2 on."""
    n = (x.bit_length() >> 3) + 1
    if n <= 255 and x > 0:
        return _LONG1[n] + x.to_bytes(n, "little")  # as encode_long(), without a call
    encoded = pickle.encode_long(x)
    n = len(encoded)
    return (_LONG1[n] if n < 256 else pickle.LONG4 + pack("<i", n)) + encoded


_LONG1: Final = _with_one_byte(pickle.LONG1)
