"""A process that answers one question at a time and can be ended at any moment."""

from __future__ import annotations

import os
import subprocess
import sys
from contextlib import suppress
from pathlib import Path
from typing import BinaryIO, cast

from racefree.errors import Refusal
from racefree.verdict import RaceConfigVerdict, Status
from racefree.workers.question import INTERNAL_ERROR, Answer, Question
from racefree.workers.serve import read_message, write_message

_SERVE = "import sys; sys.path.append(sys.argv[1]); from racefree.workers.serve import main; main()"


class Worker:
    """Started when made. It imports neither the user's main module nor anything from the folder of the script."""

    def __init__(self) -> None:
        here = str(Path(__file__).parents[2])
        self._process = subprocess.Popen(
            [sys.executable, "-P", "-c", _SERVE, here],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            bufsize=0,  # nothing may wait in a buffer that a forked child would write once more
            start_new_session=True,
        )
        write_message(self._asked, [folder for folder in sys.path if os.path.isabs(folder)])

    @property
    def _asked(self) -> BinaryIO:
        return cast(BinaryIO, self._process.stdin)

    def answer(self, question: Question) -> Answer:
        """The answer, or `unsupported` when the process did not survive the question. An interrupt ends the process."""
        try:
            write_message(self._asked, question)
            found: Answer = read_message(cast(BinaryIO, self._process.stdout))
            return found
        except (OSError, EOFError):
            self.end()
            how = f"the process that analysed it ended with status {self._process.returncode}"
            refusal = Refusal(INTERNAL_ERROR, f"{how}; please report this")
            return Answer(RaceConfigVerdict({}, Status.UNSUPPORTED, refusal=refusal))
        except BaseException:
            self.end()
            raise

    @property
    def ended(self) -> bool:
        return self._process.poll() is not None

    def end(self) -> None:
        self._process.kill()
        self._process.wait()
        self.let_go()

    def let_go(self) -> None:
        """Closes this side only: all that a forked child may do to a process of its parent."""
        for stream in (self._process.stdin, self._process.stdout):
            if stream is not None:
                with suppress(OSError):
                    stream.close()
