"""What pools do to futures that `Future` has no method for.

    set_outcome: whatever state it is in        cancel_sent: although it counts as running

Not for: waiting for futures, which is `concurrent.futures`'.
"""

from __future__ import annotations

from concurrent.futures import Future, InvalidStateError
from concurrent.futures._base import CANCELLED, LOGGER, PENDING, RUNNING
from typing import Any

__all__ = ["cancel_sent", "set_outcome"]


def set_outcome(future: Future[Any], result: Any, error: BaseException | None = None) -> None:
    """End a future, unless it has ended: it was cancelled, or somebody else has set its result, as nobody should.

    Args:
        future: the future.
        result: its result, if there is no error.
        error: its exception.
    """
    try:
        if error is None:
            future.set_result(result)
        else:
            future.set_exception(error)
    except InvalidStateError:
        cancel_sent(future)  # if it was cancelled, others may wait for being told
    except BaseException:  # a callback's: other futures are to end all the same
        LOGGER.exception("exception calling callback for %r", future)


def cancel_sent(future: Future[Any]) -> None:
    """Cancel a future, even if it counts as running: its task was sent to a worker, where it has not begun.

    Args:
        future: the future.
    """
    with future._condition:
        if future._state == RUNNING:
            future._state = PENDING
    try:
        future.cancel()  # without the lock: callbacks may have other threads look at the future
    finally:
        if future._state == CANCELLED:
            future.set_running_or_notify_cancel()
