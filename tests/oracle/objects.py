"""The classes that are pickled: every form of reduce, and objects that do something while they are pickled."""

from __future__ import annotations

import collections
import dataclasses
import enum
import typing
from collections.abc import Callable
from typing import Any


class CountsHashes:
    """Counts how often it is asked for its hash."""

    asked = 0

    def __hash__(self) -> int:
        type(self).asked += 1
        return 1

    def __eq__(self, other: object) -> bool:
        return self is other


class Plain:
    """A plain instance: its state is its __dict__."""

    def __init__(self, **state: Any) -> None:
        self.__dict__.update(state)


class Other(Plain):
    """Another class with the same ways."""


class Slotted:
    __slots__ = ("a", "b")

    def __init__(self, a: Any = None, b: Any = None) -> None:
        self.a = a
        self.b = b

    def __reduce_ex__(self, protocol: int) -> Any:
        return super().__reduce_ex__(max(protocol, 2))  # below, a class with slots has no pickle


class SlottedByDefault:
    """Without a reduce of its own, so only for protocols from 2 on."""

    __slots__ = ("a", "b")

    def __init__(self, a: Any = None, b: Any = None) -> None:
        self.a = a
        self.b = b


class SlottedAndDict(Slotted):
    """State is a pair: __dict__ and slots."""


class Hashed:
    """An instance for sets: its hash is a number of ours, so a set of them has the same order in every run."""

    def __init__(self, number: int, **state: Any) -> None:
        self.number = number
        self.__dict__.update(state)

    def __hash__(self) -> int:
        return self.number


class GetState(Plain):
    def __getstate__(self) -> Any:
        return ("state", dict(self.__dict__))

    def __setstate__(self, state: Any) -> None:
        self.__dict__.update(state[1])


class FalseState(Plain):
    def __getstate__(self) -> Any:
        return False


class NoState(Plain):
    def __getstate__(self) -> Any:
        return None


class NewArgs(Plain):
    def __new__(cls, *args: Any) -> Any:
        return super().__new__(cls)

    def __init__(self, *args: Any) -> None:
        self.args = args

    def __getnewargs__(self) -> Any:
        return self.args


class NewArgsEx(Plain):
    def __new__(cls, *args: Any, **kwargs: Any) -> Any:
        return super().__new__(cls)

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        self.args, self.kwargs = args, kwargs

    def __getnewargs_ex__(self) -> Any:
        return self.args, self.kwargs


class Reduced:
    """Its __reduce__ gives whatever it was told to give; a function is called for it."""

    def __init__(self, value: Any) -> None:
        self.value = value

    def __reduce__(self) -> Any:
        return self.value(self) if isinstance(self.value, type(lambda: 0)) else self.value


class ReducedEx:
    """The same by __reduce_ex__, and the protocol goes in."""

    def __init__(self, value: Any) -> None:
        self.value = value

    def __reduce_ex__(self, protocol: int) -> Any:
        return (make, (protocol, self.value))


class Acting:
    """Does something while it is pickled, and is pickled as a call without arguments."""

    def __init__(self, action: Callable[[], Any], number: int = 0) -> None:
        self.action = action
        self.number = number

    def __hash__(self) -> int:
        return self.number

    def __reduce__(self) -> Any:
        self.action()
        return make, ()


class ActingState:
    """Does something when its state is asked for."""

    def __init__(self, action: Callable[[], Any]) -> None:
        self.action = action

    def __getstate__(self) -> Any:
        self.action()
        return {"state": 1}


class Viaduct:
    """Saved by copyreg, or by a dispatch table."""

    def __init__(self, value: Any = None) -> None:
        self.value = value


def reduce_viaduct(obj: Viaduct) -> Any:
    return Viaduct, (obj.value,)


def make(*args: Any, **kwargs: Any) -> Any:
    """The function that most reduces name."""
    return Plain(args=args, kwargs=kwargs)


def set_state(obj: Any, state: Any) -> None:
    obj.__dict__.update(state)


class Meta(type):
    """A metaclass: its classes are saved as classes."""


class MetaReduced(type):
    """A metaclass with a reduce of its own, in copyreg."""


class OfMeta(metaclass=Meta):
    class Inner:
        class Innermost(Plain):
            pass

        def method(self) -> None:
            pass

    def method(self) -> int:
        return 1

    @classmethod
    def for_class(cls) -> int:
        return 2

    @staticmethod
    def without() -> int:
        return 3


class OfMetaReduced(metaclass=MetaReduced):
    pass


class Int(int):
    pass


class Float(float):
    pass


class Str(str):
    pass


class Bytes(bytes):
    pass


class Bytearray(bytearray):
    pass


class List(list):  # type: ignore[type-arg]
    pass


class Dict(dict):  # type: ignore[type-arg]
    pass


class Tuple(tuple):  # type: ignore[type-arg]
    pass


class Set(set):  # type: ignore[type-arg]
    pass


class Frozenset(frozenset):  # type: ignore[type-arg]
    pass


class Complex(complex):
    pass


class Colour(enum.Enum):
    RED = 1
    BLUE = "blue"


class Flag(enum.Flag):
    A = 1
    B = 2


class IntColour(enum.IntEnum):
    ONE = 1


Pair = collections.namedtuple("Pair", "left right")


class Typed(typing.NamedTuple):
    left: int
    right: str = ""


@dataclasses.dataclass
class Data:
    number: int
    text: str = "text"
    items: list[Any] = dataclasses.field(default_factory=list)


@dataclasses.dataclass(frozen=True)
class Frozen:
    number: int
    pair: tuple[int, int] = (1, 2)


@dataclasses.dataclass(slots=True, frozen=True)
class SlottedData:
    number: int
    text: str = "text"


class WithPrivate:
    """Holds a class whose name is mangled."""

    class __Private:
        pass

    private = __Private


SINGLETON = Reduced("SINGLETON")


def function(x: int = 1) -> int:
    return x


#: Named as it is not found.
renamed = Plain()


def misnamed() -> None:
    """A function whose name leads elsewhere."""


misnamed.__qualname__ = "function"


def missing() -> None:
    """A function whose module does not exist."""


missing.__module__ = "no_such_module"
