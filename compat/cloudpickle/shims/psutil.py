"""The one figure that cloudpickle's tests ask psutil for, where it cannot be installed (it has no wheels for PyPy)."""

from __future__ import annotations

import os
from pathlib import Path
from typing import NamedTuple


class _Memory(NamedTuple):
    """What ``psutil.Process.memory_info`` gives, as far as it is asked for.

    Args:
        rss: resident memory, in bytes.
    """

    rss: int


class Process:
    """A process.

    Args:
        pid: its number.
    """

    def __init__(self, pid: int) -> None:
        self._pid = pid

    def memory_info(self) -> _Memory:
        """Read how much memory the process has (Linux: proc_pid_statm(5))."""
        pages = Path(f"/proc/{self._pid}/statm").read_text(encoding="ascii").split()[1]
        return _Memory(int(pages) * os.sysconf("SC_PAGE_SIZE"))
