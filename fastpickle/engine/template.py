"""Templates: what an encoder gave for an object, to be used again, where all that it depends on is as it was.

    Template(encoder, parts, obj) --> segments of bytes, and GETs between them; what is memoized
    template.encode(memo, i, pieces) --> the same, for a memo of `i` entries that has nothing of it

Not for: finding out whether what it depends on is as it was (`backends`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from pickle import LONG_BINGET
from typing import Any, Final

from ..hooks import ATOM_IDS
from ..opcodes import BINGET, pack_long_binget
from .encoders import Encoder, Memo, NotBrief, Parts

__all__ = ["Template"]


class Template:
    """What an encoder gave for an object, to be used again where nothing of that is in the memo.

    Args:
        encoder: the encoder; what it does must not depend on anything but the memo.
        parts, obj: what it is called with.
        numbers: what it looks for in the memo but does not memoize.
        is_made_anew: tells of what it memoizes whether that is another object each time, and equal.
        given: what is memoized, or is in what is made anew, and will be given for each use, since it must not be kept;
            None for what is used with any plan: then only atoms may be fetched.

    Raises:
        NotBrief: it fetches what is no atom, or much is memoized.
        Exception: what the encoder raises.
    """

    __slots__ = ("keys", "made_anew", "numbers", "objs", "place_of", "segments", "stand_ins")

    def __init__(
        self,
        encoder: Encoder,
        parts: Parts,
        obj: Any,
        numbers: Iterable[Any] = (),
        is_made_anew: Callable[[Any], bool] = lambda x: False,
        given: list[Any] | None = None,
    ) -> None:
        memo: Memo = {}
        pieces: list[bytes] = []
        encoder(parts, obj, memo, 0, pieces)
        if len(memo) > len(BINGET):
            raise NotBrief
        objs = [x for _, x in memo.values()]
        self.segments: list[bytes | int] = []
        data = b""
        for piece in pieces:
            k = _GETS.get(id(piece))
            if k is None:
                data += piece
            elif given is not None or id(type(objs[k])) in ATOM_IDS:
                self.segments += data, k
                data = b""
            else:  # a library may not fetch it (`Plan.rewrites`)
                raise NotBrief
        self.segments.append(data)
        self.numbers = [*numbers]
        self.stand_ins = [object() for _ in given or ()]
        kept = {id(x): stand_in for x, stand_in in zip(given or (), self.stand_ins, strict=True)}
        self.place_of = [memo.get(id(x), (None,))[0] for x in given or ()]
        self.made_anew = [k for k, x in enumerate(objs) if id(x) not in kept and is_made_anew(x)]
        for k in self.made_anew:  # with stand-ins in it, too
            kept[id(objs[k])] = _copy(objs[k], kept)
        self.objs = [kept.get(id(x), x) for x in objs]  # which stay alive, so that nothing else has their ids
        self.keys = frozenset((*map(id, self.objs), *map(id, self.numbers)))

    def encode(self, memo: Memo, i: int, pieces: list[bytes]) -> int:
        """Do what the encoder would, and return that; 0 if something of it is in the memo, and then nothing is done."""
        return self.append(memo, i, pieces) if memo.keys().isdisjoint(self.keys) else 0

    def append(self, memo: Memo, i: int, pieces: list[bytes], given: Sequence[Any] = ()) -> int:
        """Do what the encoder would, and return that; nothing of it, or of what is given, may be in the memo."""
        for segment in self.segments:
            if isinstance(segment, bytes):
                pieces.append(segment)
            else:
                k = i + segment
                pieces.append(BINGET[k] if k <= 255 else pack_long_binget(LONG_BINGET, k))
        objs = self.objs
        if self.made_anew or given:
            objs = [*objs]
            copies: dict[int, Any] = {}
            if given:
                for stand_in, place, x in zip(self.stand_ins, self.place_of, given, strict=True):
                    copies[id(stand_in)] = x
                    if place is not None:
                        objs[place] = x
            for k in self.made_anew:
                x = objs[k]
                objs[k] = copies[id(x)] = _copy(x, copies)
        memo.update(zip(map(id, objs), enumerate(objs, i)))  # noqa: B905  # they are of one length
        return i + len(objs)


def _copy(x: Any, copies: dict[int, Any]) -> Any:
    """Return another text or bytes that is equal, or a tuple or dict with copies in it, that are found by their ids."""
    t = type(x)
    if t is str:
        return x.encode().decode()
    if t is tuple:
        return (*map(copies.get, map(id, x), x),)
    return bytes(memoryview(x)) if t is bytes else {key: copies.get(id(y), y) for key, y in x.items()}


#: The number of each GET in the table, by its id.
_GETS: Final = {id(get): k for k, get in enumerate(BINGET)}
