"""Have each dump of a running program made once more, by stock, in a copy of the process, and compare what is written.

    the program                      a copy of it                          two copies of the copy
    dump(obj) begins --------------> becomes stock; dump(obj)              wait
    dump(obj), accelerated           what it wrote --> pipe
    dump(obj) ends <--- compare -----+
                        they differ ---------------------------------------> ours: does it differ in a copy, too?
                                  -----------------------------------------> stock: does it repeat itself?
                        --> a record in the log

The copy is made as `Pickler.dump` begins, so stock finds the very objects, memo and file that ours finds, and what it
does to them is gone with the copy.  `sys.monitoring` tells of begin and end: no function of the program is replaced and
no frame comes between, so the dump goes just the way that it goes otherwise.  Handlers of signals wait while the copy
is made, and while it is compared.

Whatever somebody's code does outside of the process in a dump, but for writing to what is open, such as removing a
file, it does again in a copy.

Not for: the command line and the report (`verify`), or times, which the copying spoils.
"""

from __future__ import annotations

import dataclasses
import json
import os
import random
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from types import CodeType, FrameType
from typing import Any, Final

import fastpickle
from fastpickle._stdlib import StockPickler, register_at_fork
from fastpickle.cli._compare import DIFFERENT, IDENTICAL, stock_dumps
from fastpickle.cli._copies import OURS, Copies
from fastpickle.cli._records import NOT_COMPARED, PATIENCE, Record
from fastpickle.cli._signals import Deferred, is_of_a_signal
from fastpickle.cli._uses import CannotTell, Made, Use

__all__ = ["Beside"]

_FRAMES_SHOWN: Final = 4
"""Lines of the program that a record of a difference names."""

_NOT_SHOWN: Final = frozenset({"fastpickle", "pickle", "runpy"})
"""Packages of which no lines are named."""

_NOT_OF_THE_PROGRAM: Final = "fastpickle.graft"  # its warm() dumps samples
_monitoring: Final[Any] = getattr(sys, "monitoring", None)  # from 3.12 on; `verify` asks for it before
_DUMP: Final = fastpickle.Pickler.dump.__code__
_DUMPS: Final = fastpickle.dumps.__code__


@dataclasses.dataclass
class _Dump:
    """A dump that has begun.

    Attributes:
        pickler: the class of the pickler.
        use: what tells what comes of it.
        copies: those that do the same.
        why: for what reason there are none; else empty.
    """

    pickler: str = ""
    use: Use | None = None
    copies: Copies | None = None
    why: str = ""


class Beside:
    """Compares each dump of this process, and of those that it forks, with stock's.

    Args:
        log: the file to which a line is added for each dump.
        every: compare one dump in so many, at random, and the first one.
        patience: seconds that stock may take for a dump, from the end of ours.
    """

    def __init__(self, log: Path, every: int = 1, patience: float = PATIENCE) -> None:
        self._log = log.absolute()  # not kept open: the program may close all files that it does not know
        self._every = every
        self._patience = patience
        self._random = random.Random()
        self._is_first = True
        self._dumps: dict[FrameType, _Dump] = {}
        self.lost = 0  # records that could not be written
        self.is_different = False
        self._tool = -1
        # So that there is an event of what is raised while there is a dump.
        self._lock = threading.RLock()
        release = self._lock.release
        register_at_fork(before=self._lock.acquire, after_in_parent=release, after_in_child=self._forget)

    def start(self) -> None:
        """Compare from now on.

        Raises:
            RuntimeError: all of `sys.monitoring`'s tools are in use.
        """
        events = _monitoring.events
        free = [tool for tool in range(6) if _monitoring.get_tool(tool) is None]
        if not free:
            raise RuntimeError("all tools of sys.monitoring are in use")
        self._tool = tool = free[-1]
        _monitoring.use_tool_id(tool, "fastpickle")
        _monitoring.register_callback(tool, events.PY_START, self._began)
        _monitoring.register_callback(tool, events.PY_RETURN, self._returned)
        _monitoring.register_callback(tool, events.PY_UNWIND, self._raised)
        for code in _DUMP, _DUMPS:
            _monitoring.set_local_events(tool, code, events.PY_START | events.PY_RETURN)

    def stop(self) -> None:
        """Compare no more."""
        _monitoring.set_events(self._tool, 0)
        for code in _DUMP, _DUMPS:
            _monitoring.set_local_events(self._tool, code, 0)
        _monitoring.free_tool_id(self._tool)

    def _forget(self) -> None:
        """Let go of the dumps that are going on: in a process that was forked meanwhile they are not this one's."""
        for dump in self._dumps.values():
            if dump.copies:
                dump.copies.let_go()
        self._dumps.clear()
        if self._tool >= 0:
            _monitoring.set_events(self._tool, 0)
        self._lock.release()

    def _began(self, code: CodeType, offset: int) -> None:
        frame = sys._getframe(1)
        caller = frame.f_back
        if caller and (caller.f_code is _DUMPS or caller.f_globals.get("__name__") == _NOT_OF_THE_PROGRAM):
            return
        if self._every > 1 and not self._is_first and self._random.random() * self._every >= 1:
            return
        self._is_first = False
        with Deferred() as signals:
            dump = _Dump()
            try:
                self._begin(dump, frame, code, signals)
            except Exception as exc:  # an audit hook may forbid the fork by any; nothing of this is the program's
                dump.why = _reason(exc)
                if dump.copies:
                    dump.copies.end(is_stuck=True)
                    dump.copies = None
            with self._lock:
                self._dumps[frame] = dump
                _monitoring.set_events(self._tool, _monitoring.events.PY_UNWIND)  # there is none of one function only

    def _begin(self, dump: _Dump, frame: FrameType, code: CodeType, signals: Deferred) -> None:
        given = frame.f_locals
        obj = given["obj"]
        if code is _DUMPS:
            dump.pickler = "fastpickle.dumps"
            arguments = {name: given[name] for name in ("protocol", "fix_imports", "buffer_callback")}
            if arguments["buffer_callback"] is not None:
                raise CannotTell("dumps() with a buffer_callback: only picklers are compared then")
            use = Use(None, lambda: stock_dumps(obj, **arguments), lambda: fastpickle.dumps(obj, **arguments))
        else:
            pickler = given["self"]
            dump.pickler = f"{type(pickler).__module__}.{type(pickler).__qualname__}"
            if "_fastpickle_plan" in vars(pickler):
                raise CannotTell("the pickler is dumping already")
            ours = fastpickle.Pickler.dump
            use = Use(pickler, lambda: StockPickler.dump(pickler, obj), lambda: ours(pickler, obj))
        dump.copies = Copies(use, frame, signals, self._patience, self.stop)
        dump.copies.start()
        dump.use = use
        use.begin()

    def _returned(self, code: CodeType, offset: int, value: object) -> None:
        self._ended(sys._getframe(1), None, value)

    def _raised(self, code: CodeType, offset: int, exc: BaseException) -> None:
        if code is _DUMP or code is _DUMPS:
            self._ended(sys._getframe(1), exc, None)

    def _ended(self, frame: FrameType, exc: BaseException | None, value: object) -> None:
        if frame not in self._dumps:
            return
        with Deferred() as signals:
            with self._lock:
                dump = self._dumps.pop(frame)
                if not self._dumps:
                    _monitoring.set_events(self._tool, 0)
            record = Record(dump.pickler, NOT_COMPARED, dump.why)
            is_interrupted = exc is not None and is_of_a_signal(exc, signals.handlers)
            if dump.copies and dump.use:
                is_stuck = True
                try:
                    record = _compare(dump, dump.use.end(exc, value), frame, is_interrupted)
                    is_stuck = False
                except Exception as why:
                    record = Record(dump.pickler, NOT_COMPARED, _reason(why))
                finally:
                    dump.copies.end(is_stuck)
            self.is_different |= record.result == DIFFERENT
            try:
                self._write(record)
            except OSError:
                self.lost += 1

    def _write(self, record: Record) -> None:
        log = os.open(self._log, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
        try:
            os.write(log, json.dumps(dataclasses.asdict(record)).encode() + b"\n")
        finally:
            os.close(log)


def _reason(exc: BaseException) -> str:
    return str(exc) if isinstance(exc, CannotTell) else repr(exc)


def _compare(dump: _Dump, ours: Made, frame: FrameType, is_interrupted: bool) -> Record:
    """Compare what ours made with what the copies make.

    Args:
        dump: the dump that has ended.
        ours: what came of it.
        frame: that of `Pickler.dump` or `dumps`.
        is_interrupted: a signal's handler ended it.

    Raises:
        CannotTell: that is so; or stock does not do the same twice, or does not end.
    """
    assert dump.copies is not None
    if is_interrupted:
        raise CannotTell("a signal's handler ended it")
    stock = dump.copies.result(0)
    identical = Record(dump.pickler, IDENTICAL, size=len(ours.written))
    if ours == stock:
        return identical
    if stock.is_of_files and not ours.error:
        raise CannotTell("in a copy of the process, which has no pipes and sockets, stock failed")
    if stock.error.startswith("RecursionError"):
        raise CannotTell("stock reached the recursion limit")
    if dump.copies.result(OURS) == stock:  # it is the copy that differs: it has no other threads, no other files
        return identical
    if dump.copies.result(OURS + 1) != stock:
        raise CannotTell("stock itself does not write the same twice")
    where, said = list(_lines_of(frame.f_back))[::-1], ours.differs_from(stock)
    return Record(dump.pickler, DIFFERENT, "", len(ours.written), where, said)


def _lines_of(frame: FrameType | None) -> Iterator[str]:
    """Name the lines of the program that are being run, the innermost first, without those that pickle."""
    shown = 0
    while frame is not None and shown < _FRAMES_SHOWN:
        module = str(frame.f_globals.get("__name__"))
        if module == "fastpickle.cli.verify":
            return  # here the program began
        if module.partition(".")[0] not in _NOT_SHOWN:
            yield f"{frame.f_code.co_filename}:{frame.f_lineno} in {frame.f_code.co_name}"
            shown += 1
        frame = frame.f_back
