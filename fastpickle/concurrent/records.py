"""How the process-and-thread pool and its workers speak: records of bytes, through one pipe each way for each worker.

    record = header (kind, number of the task, seconds, length of the payload) + payload

    to a worker:    TASK, CHUNK, RETURN, STOP
    from a worker:  READY, RESULT, ERROR, RETURNED, FAILED

Not for: what is in a payload (`process_thread_pool` and `worker`).
"""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Iterable
from struct import Struct
from typing import Any

try:
    import fcntl
except ImportError:  # Windows, where the executor says that it cannot be made
    fcntl = None  # type: ignore[assignment]  # it is not there

__all__ = [
    "CHUNK",
    "ERROR",
    "FAILED",
    "READY",
    "RESULT",
    "RETURN",
    "RETURNED",
    "STOP",
    "TASK",
    "Outbox",
    "Records",
    "record",
    "widen",
]

# To a worker.
TASK = 1
"""A call: the payload is (fn, args, kwargs)."""
CHUNK = 2
"""Calls of one function, whose results come back together: the payload is (fn, [args, ...])."""
RETURN = 3
"""The worker is to send back what it has not begun."""
STOP = 4
"""The worker is to end; it has no task any more."""

# From a worker.
READY = 5
"""The initializer has returned."""
RESULT = 6
"""A task has returned: the payload is what it returned, for a CHUNK a list; the seconds are those that it took."""
ERROR = 7
"""A task has raised: the payload is the exception."""
RETURNED = 8
"""A task that was not begun: the payload is as it came, after one byte that says TASK or CHUNK."""
FAILED = 9
"""An initializer has raised: the payload is its traceback, as text."""

_HEADER = Struct("<BQdQ")
_READ = 1 << 20
"""Bytes that one read asks for."""
_PIPE = 1 << 17
"""Bytes that a pipe is to hold, where it can be told, instead of 64 KiB: what is larger is out of the caches."""
_LARGE = 1 << 16
"""A payload of so many bytes is read into its place, and not put together of what the reads give."""
_COPIED = 1 << 14
"""A payload of fewer bytes is copied behind its header: that costs less than one more part of a write."""
_PARTS = 512
"""Parts of one write, fewer than the 1024 that systems take at least."""


def widen(fd: int) -> None:
    """Make a pipe hold more, where the system lets us: a large payload then takes fewer turns of both sides."""
    try:
        fcntl.fcntl(fd, fcntl.F_SETPIPE_SZ, _PIPE)
    except (AttributeError, OSError):  # it is no Linux, or this user has too many of them
        pass


def record(kind: int, number: int, payload: bytes = b"", seconds: float = 0.0) -> tuple[bytes, ...]:
    """Return a record's bytes, in two parts where joining them would copy much."""
    header = _HEADER.pack(kind, number, seconds, len(payload))
    return (header + payload,) if len(payload) < _COPIED else (header, payload)


class Records:
    """The records that come through a pipe, however its reads cut them."""

    def __init__(self, fd: int) -> None:
        self._fd = fd
        self._rest = b""
        """The beginning of a record."""
        self._large: tuple[int, int, float, bytearray] | None = None
        """A record whose large payload is being read into its place."""
        self._filled = 0

    def read(self) -> list[tuple[int, int, float, Any]] | None:
        """Read once from the pipe.

        Returns:
            (kind, number, seconds, payload) of each record that is complete now; None if the pipe was closed at its
            other end, in the middle of a record or not.

        Raises:
            BlockingIOError: the pipe is empty, and does not block.
            OSError: the pipe is broken.
        """
        if self._large is not None:
            payload = self._large[3]
            n = os.readv(self._fd, [memoryview(payload)[self._filled :]])
            if not n:
                return None
            self._filled += n
            if self._filled < len(payload):
                return []
            found, self._large = [self._large], None
            return found
        data = os.read(self._fd, _READ)
        if not data:
            return None
        return self._cut(self._rest + data if self._rest else data)

    def _cut(self, data: bytes) -> list[tuple[int, int, float, Any]]:
        found: list[tuple[int, int, float, Any]] = []
        at, end = 0, len(data)
        while end - at >= _HEADER.size:
            kind, number, seconds, length = _HEADER.unpack_from(data, at)
            begin = at + _HEADER.size
            if end - begin < length:
                if length >= _LARGE:
                    payload = bytearray(length)
                    payload[: end - begin] = memoryview(data)[begin:]
                    self._large, self._filled = (kind, number, seconds, payload), end - begin
                    at = end
                break
            at = begin + length
            found.append((kind, number, seconds, data[begin:at]))
        self._rest = data[at:]
        return found


class Outbox:
    """What is to go into a pipe that may be full; the order is kept."""

    def __init__(self, fd: int) -> None:
        self._fd = fd
        self._parts: deque[bytes | memoryview] = deque()

    def __bool__(self) -> bool:
        """Tell whether something waits for the pipe to have room."""
        return bool(self._parts)

    def put(self, parts: Iterable[bytes]) -> None:
        """Add parts of records; `flush` writes them."""
        self._parts.extend(parts)

    def flush(self) -> None:
        """Write as much as the pipe takes; if it blocks, all.

        Raises:
            OSError: the other end is closed, or the pipe is broken.
        """
        parts = self._parts
        while parts:
            some = [parts.popleft() for _ in range(min(len(parts), _PARTS))]  # others add at the right meanwhile
            try:
                n = os.writev(self._fd, some)
            except BlockingIOError:
                n = -1
            left = max(n, 0)
            for i, part in enumerate(some):
                if left < len(part):
                    parts.extendleft(reversed([memoryview(part)[left:], *some[i + 1 :]]))
                    break
                left -= len(part)
            if n < 0:
                return
