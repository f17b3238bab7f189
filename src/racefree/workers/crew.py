"""Who answers: this process, and when it is busy or the work is long, processes beside it that are kept for later."""

from __future__ import annotations

import atexit
import os
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import cache

from racefree.forking import Rank, guarded
from racefree.workers.question import Answer, Question, answer
from racefree.workers.work import Work
from racefree.workers.worker import Worker

HERE = guarded(Rank.ANALYSING)
"""Held while this process analyses: the solver, the compiled functions and the helpers of the proofs are used by one thread at
a time, and a fork waits until they are not in use."""

PATIENCE_SECONDS = 0.25
"""How long another thread's analysis is waited for before a process is started: about what a start takes of a core."""

LONG_SECONDS = 1.0
"""From then on many questions are shared with other processes."""

MOST_JOBS = 8


def usual_jobs() -> int:
    """One process for each core that this one may use; one alone beside the workers of a parallel test run."""
    if "PYTEST_XDIST_WORKER" in os.environ:
        return 1
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    return min(cores, MOST_JOBS)


class Crew:
    """At most `jobs` processes, of which this one is the first. The others start when they are needed, and are kept."""

    def __init__(self, jobs: int) -> None:
        self.jobs = jobs
        self._free: list[Worker] = []
        self._busy: set[Worker] = set()
        self._lock = threading.Lock()

    def ask(self, questions: Sequence[Question], got: Callable[[int, Answer], None]) -> None:
        """Has all questions answered by whoever is free. `got` hears of each answer as it comes, in any order and thread.

        Raises only an interrupt.
        """
        work = Work(questions, got)
        with self._place() as worker:
            if worker is None:
                self._share(work)
            else:
                work.from_front(worker.answer)

    @contextmanager
    def _place(self) -> Iterator[Worker | None]:
        """None with this process taken, or else a worker."""
        worker = None
        while not HERE.acquire(timeout=PATIENCE_SECONDS):
            worker = self._hire()
            if worker is not None:
                break
        try:
            yield worker
        finally:
            if worker is None:
                HERE.release()
            else:
                self._dismiss(worker)

    def _share(self, work: Work) -> None:
        """Answers in this process, with others taking questions from the back once it has gone on for long."""
        start = time.monotonic()
        beside: list[tuple[threading.Thread, Worker]] = []

        def call_for_help() -> None:
            if work.left < 2 or time.monotonic() - start < LONG_SECONDS:
                return
            worker = self._hire()
            if worker is not None:
                thread = threading.Thread(target=self._help, args=(worker, work), daemon=True)
                beside.append((thread, worker))
                thread.start()

        try:
            work.from_front(answer, before=call_for_help)
            for thread, _ in beside:
                thread.join()
        except BaseException:
            work.stop()
            for _, worker in beside:
                worker.end()
            raise

    def _help(self, worker: Worker, work: Work) -> None:
        try:
            work.from_back(worker.answer)
        finally:
            self._dismiss(worker)

    def _hire(self) -> Worker | None:
        """A worker that is free or can be started, None when all are at work."""
        with self._lock:
            while self._free:
                worker = self._free.pop()
                if not worker.ended:
                    self._busy.add(worker)
                    return worker
            if len(self._busy) >= self.jobs - 1:
                return None
            try:
                worker = Worker()
            except OSError:  # the system has no process left: then this one does it all
                return None
            self._busy.add(worker)
            return worker

    def _dismiss(self, worker: Worker) -> None:
        with self._lock:
            self._busy.discard(worker)
            if not worker.ended:
                self._free.append(worker)

    def close(self) -> None:
        """Ends all processes, whatever they do."""
        for worker in (*self._free, *self._busy):
            worker.end()

    def forget(self) -> None:
        """In a forked child: the processes are those of the parent, and so are the threads that held the lock."""
        self._lock = threading.Lock()
        _OF_PARENT.extend((*self._free, *self._busy))
        for worker in _OF_PARENT:
            worker.let_go()
        self._free, self._busy = [], set()


_OF_PARENT: list[Worker] = []  # kept, since a process object that is dropped waits for what is no child of this process


@cache
def crew(jobs: int | None = None) -> Crew:
    """The one crew of this process with so many jobs, by default one for each core."""
    made = Crew(usual_jobs() if jobs is None else jobs)
    atexit.register(made.close)
    if hasattr(os, "register_at_fork"):
        os.register_at_fork(after_in_child=made.forget)
    return made
