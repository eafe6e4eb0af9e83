"""multiprocess's entry points, for the table of speed-ups."""

from __future__ import annotations

from collections.abc import Callable
from threading import Thread

from multiprocess import Pipe

from compat._realdata import RealData


def entries(data: RealData) -> dict[str, Callable[[], object]]:
    """Give the library's entry points.

    Args:
        data: what to send.

    Returns:
        The name as users write it -> a call without arguments that sends the tokens, or tasks as a pool does; the bytes
        that arrive.
    """
    factor = 2.5

    def send() -> bytes:
        arrived: list[bytes] = []
        reader, writer = Pipe(duplex=False)
        drain = Thread(target=lambda: arrived.append(reader.recv_bytes()))  # a pipe holds less than the tokens take
        drain.start()
        with writer:
            writer.send(data.tokens)
        drain.join()
        reader.close()
        return arrived[0]

    def scaled(number: int) -> float:
        return factor * number

    def send_tasks() -> bytes:
        reader, writer = Pipe(duplex=False)
        arrived = []
        for job in range(_TASKS):
            writer.send((job, 0, scaled, (job,), {}))
            arrived.append(reader.recv_bytes())
        writer.close()
        reader.close()
        return b"".join(arrived)

    return {"multiprocess send": send, "multiprocess send (tasks of a closure)": send_tasks}


_TASKS = 100
