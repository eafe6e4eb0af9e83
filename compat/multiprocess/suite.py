"""What to run of multiprocess's tests: the classes whose tests pickle, under the start methods where they do.

multiprocess is the stdlib's multiprocessing with dill in the place of pickle: ``ForkingPickler`` is a ``dill.Pickler``
whose instances have a ``dispatch_table`` of their own.  Its tests are the stdlib's, some 400 for each start method, and
take minutes.  Many are of locks, conditions, barriers, events, signals and timeouts, or run on threads (where nothing
is pickled), and are left out.  What is left, by what is pickled:

    exchange    what goes through connections and queues; connections, shared memory and shared ctypes as arguments,
                which are pickled with the process object under spawn
    pools       tasks, results and exceptions on their way to workers and back
    managers    calls, results, exceptions and proxies on their way to a server and back

A unit is a group under a start method, "spawn-pools"; a test's id is "spawn-pools::WithProcessesTestPool.test_map".
Under forkserver the parent writes what it writes under spawn, so of it there is only what passes file descriptors.  The
managers' longest classes run under fork only: what goes to a server does not depend on how it was started.
"""

from __future__ import annotations

import importlib.util
from pathlib import Path

from compat._fetch import need
from compat._suite import STOCK, MissingInput, Suite
from compat.multiprocess.deselected import DESELECTED

VERSION = "0.70.19"

NEEDED = {"multiprocess": VERSION, "dill": "0.4.1"}
"""Distribution -> its version; without dill, multiprocess would quietly pickle with pickle."""

MODES = {
    "installed": "fastpickle.install(), then multiprocess is imported; spawned children are stock",
    "installed-late": "multiprocess is imported, with dill, then fastpickle.install(); under fork only",
    "installed-children": "as installed, and in every child too, by a sitecustomize; spawn and forkserver, in part",
}

GROUPS = {
    "exchange": (
        "WithProcessesTestArray",
        "WithProcessesTestConnection",
        "WithProcessesTestHeap",
        "WithProcessesTestListenerClient",
        "WithProcessesTestPicklingConnections",
        "WithProcessesTestQueue",
        "WithProcessesTestSharedCTypes",
        "WithProcessesTestSharedMemory",
        "WithProcessesTestSubclassingProcess",
        "WithProcessesTestValue",
        "TestSimpleQueue",
    ),
    "pools": (
        "WithProcessesTestPool",
        "WithProcessesTestPoolWorkerErrors",
        "TestInitializers",
        "TestPoolNotLeakOnFailure",
    ),
    "managers": (
        "WithManagerTestContainers",
        "WithManagerTestMyManager",
        "WithManagerTestQueue",
        "WithManagerTestRemoteManager",
    ),
    "long-managers": (
        "WithManagerTestManagerRestart",
        "WithManagerTestPool",
        "TestSyncManagerTypes",
    ),
}
"""Group -> its test classes; one that a Python's wheel does not have is left out there."""

_FORK = ("fork-exchange", "fork-pools", "fork-managers", "fork-long-managers")
_SPAWN = ("spawn-exchange", "spawn-pools", "spawn-managers")
_CHILDREN = ("spawn-pools", "forkserver-exchange")


def prepare(source: Path | None) -> Suite:
    """Find multiprocess and its tests.

    Args:
        source: must be None; multiprocess's tests come with multiprocess.

    Returns:
        The suite.

    Raises:
        MissingInput: multiprocess or dill is not installed at its pinned version, the interpreter has no
            ``test.support``, or a source was given.
    """
    if source is not None:
        raise MissingInput("multiprocess takes no --source: its tests are inside its wheels")
    need("multiprocess", NEEDED)
    if not _has_test_support():
        raise MissingInput("this interpreter has no test.support, which multiprocess's tests need")
    return Suite(
        name="multiprocess",
        version=f"multiprocess {VERSION}",
        modes=MODES,
        units={
            STOCK: (*_SPAWN, "forkserver-exchange", *_FORK),  # the long ones first
            "installed": (*_SPAWN, *_FORK),
            "installed-late": _FORK,
            "installed-children": _CHILDREN,
        },
        deselected=DESELECTED,
    )


def _has_test_support() -> bool:
    """Say whether the interpreter comes with what its own tests stand on."""
    try:
        return importlib.util.find_spec("test.support") is not None
    except ImportError:
        return False
