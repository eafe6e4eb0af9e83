"""multiprocess's entry point, for the table of speed-ups."""

from __future__ import annotations

from collections.abc import Callable
from threading import Thread

from multiprocess import Pipe

from compat._realdata import RealData


def entries(data: RealData) -> dict[str, Callable[[], object]]:
    """Give the library's entry point.

    Args:
        data: what to send.

    Returns:
        The name as users write it -> a call without arguments that sends the tokens; the bytes that arrive.
    """

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

    return {"multiprocess send": send}
