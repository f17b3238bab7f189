"""The process behind a `Worker`: answers questions until its standard input closes, and then ends at once."""

from __future__ import annotations

import os
import pickle
import queue
import signal
import sys
import threading
from typing import Any, BinaryIO

LENGTH_BYTES = 8


def read_message(stream: BinaryIO) -> Any:
    """The next message of a stream. Raises EOFError at its end."""
    length = _exactly(stream, LENGTH_BYTES)
    return pickle.loads(_exactly(stream, int.from_bytes(length)))


def write_message(stream: BinaryIO, message: Any) -> None:
    data = pickle.dumps(message, protocol=pickle.HIGHEST_PROTOCOL)
    left = memoryview(len(data).to_bytes(LENGTH_BYTES) + data)
    while left:
        left = left[stream.write(left) :]
    stream.flush()


def _exactly(stream: BinaryIO, count: int) -> bytes:
    parts: list[bytes] = []
    while count:
        part = stream.read(count)
        if not part:
            raise EOFError
        parts.append(part)
        count -= len(part)
    return b"".join(parts)


def main() -> None:
    """Serve. What libraries print goes to stderr; Ctrl-C is the asker's to hear."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    asked, answers = os.fdopen(os.dup(0), "rb"), os.fdopen(os.dup(1), "wb")
    nothing = os.open(os.devnull, os.O_RDONLY)
    os.dup2(nothing, 0)
    os.dup2(2, 1)
    sys.path += [folder for folder in read_message(asked) if folder not in sys.path]
    waiting: queue.SimpleQueue[Any] = queue.SimpleQueue()
    threading.Thread(target=_listen, args=(asked, waiting), daemon=True).start()
    from racefree.workers.question import answer

    while True:
        write_message(answers, answer(waiting.get()))


def _listen(asked: BinaryIO, waiting: queue.SimpleQueue[Any]) -> None:
    """Hears while a question is being answered that the asker is gone."""
    try:
        while True:
            waiting.put(read_message(asked))
    except BaseException:
        os._exit(0)


if __name__ == "__main__":
    main()
