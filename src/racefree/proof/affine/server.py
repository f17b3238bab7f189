"""The process that decides the emptiness of integer sets: reads one set a line, answers "empty", "inhabited" or "error".

Run by file name, so that it imports nothing of racefree and never the user's main module.
"""

from __future__ import annotations

import sys

import islpy

MEMORY_LIMIT_BYTES = 4 << 30


def answer(text: str) -> str:
    try:
        return "empty" if islpy.Set(text).is_empty() else "inhabited"
    except Exception:  # whatever isl raises, the asker must hear that nothing was decided
        return "error"


def _limit_memory() -> None:
    try:
        import resource
    except ImportError:
        return
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY_LIMIT_BYTES, MEMORY_LIMIT_BYTES))


def main() -> None:
    """Serve until standard input closes: each line is a number, a blank and a set; the answer repeats the number."""
    _limit_memory()
    sys.stdout.write("ready\n")
    sys.stdout.flush()
    for line in sys.stdin:
        number, _, text = line.partition(" ")
        sys.stdout.write(f"{number} {answer(text)}\n")
        sys.stdout.flush()


if __name__ == "__main__":
    main()
