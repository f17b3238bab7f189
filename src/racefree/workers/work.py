"""A list of questions that several take from: this process from the front, others from the back."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence

from racefree.workers.question import Answer, Question


class Work:
    """Every question is taken once. Who has taken one answers it, or stops the work. `got` hears of each answer."""

    def __init__(self, questions: Sequence[Question], got: Callable[[int, Answer], None]) -> None:
        self._questions = questions
        self._got = got
        self._first, self._end = 0, len(questions)
        self._lock = threading.Lock()

    @property
    def left(self) -> int:
        """How many questions nobody has taken."""
        return self._end - self._first

    def from_front(self, answer: Callable[[Question], Answer], *, before: Callable[[], None] = lambda: None) -> None:
        """Takes and answers until nothing is left; `before` is called ahead of each."""
        while True:
            before()
            with self._lock:
                if not self.left:
                    return
                index, self._first = self._first, self._first + 1
            self._got(index, answer(self._questions[index]))

    def from_back(self, answer: Callable[[Question], Answer]) -> None:
        while True:
            with self._lock:
                if not self.left:
                    return
                self._end -= 1
                index = self._end
            self._got(index, answer(self._questions[index]))

    def stop(self) -> None:
        """Nothing more is to be taken."""
        with self._lock:
            self._end = self._first
