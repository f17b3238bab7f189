"""Questions are answered alike wherever they are answered, side by side, and nothing is left running."""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch
import worker_kernels as kernels

import racefree
from racefree.analysis import Analyst
from racefree.config import Settings
from racefree.launch import Launch
from racefree.proof.rungs import Options
from racefree.session import deciding
from racefree.triton.capture import capture_one
from racefree.verdict import Status
from racefree.workers import crew as crews
from racefree.workers.crew import HERE, Crew
from racefree.workers.question import Answer, Question, answer
from racefree.workers.worker import Worker


def question(step: int) -> Question:
    out = torch.zeros(256, dtype=torch.int32)
    (config,) = capture_one(kernels.fill, [out], {"STEP": step, "BLOCK": 16}, (4,)).configs
    assert config.module is not None
    assert config.facts is not None
    return Question(config.module, config.facts, Options(scope="launch"))


def timeless(found: Answer) -> Answer:
    return replace(found, verdict=replace(found.verdict, seconds=0.0))


def asked(crew: Crew, questions: list[Question]) -> tuple[list[Answer], set[str]]:
    """The answers in order, and the names of the threads that brought them."""
    found: dict[int, Answer] = {}
    threads: set[str] = set()

    def got(index: int, answer: Answer) -> None:
        assert index not in found
        found[index] = answer
        threads.add(threading.current_thread().name)

    crew.ask(questions, got)
    return [found[index] for index in range(len(questions))], threads


@pytest.fixture
def two() -> Iterator[Crew]:
    made = Crew(2)
    yield made
    made.close()


def running(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


def test_a_worker_answers_as_this_process_does() -> None:
    worker = Worker()
    try:
        for step in (16, 8):
            each = question(step)
            assert timeless(worker.answer(each)) == timeless(answer(each))
    finally:
        worker.end()


def test_a_process_that_does_not_survive_is_no_answer() -> None:
    worker = Worker()
    worker._process.kill()
    found = worker.answer(question(16))
    assert found.verdict.status is Status.UNSUPPORTED
    assert found.verdict.refusal is not None
    assert found.verdict.refusal.kind == "internal-error"
    assert "ended with status -9" in found.verdict.refusal.reason
    assert worker.ended


def test_one_thread_needs_no_process(two: Crew) -> None:
    answers, _ = asked(two, [question(16), question(8)])
    assert [each.verdict.status for each in answers] == [Status.OK, Status.RACES]
    assert not two._free


def test_long_work_is_shared_in_order(two: Crew, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(crews, "LONG_SECONDS", 0.0)
    questions = [question(step) for step in (16, 8, 24, 4)]
    answered = threading.Event()
    helped = threading.Event()

    def slow(each: Question) -> Answer:
        """The first question of this process lasts until the other one has answered its own."""
        if not answered.is_set():
            answered.set()
            assert helped.wait(60)
        return answer(each)

    real = Worker.answer

    def told(self: Worker, each: Question) -> Answer:
        found = real(self, each)
        helped.set()
        return found

    monkeypatch.setattr(crews, "answer", slow)
    monkeypatch.setattr(Worker, "answer", told)
    answers, threads = asked(two, questions)
    assert [each.verdict.status for each in answers] == [Status.OK, Status.RACES, Status.OK, Status.RACES]
    assert len(threads) == 2
    assert len(two._free) == 1


def test_a_second_thread_does_not_wait_for_the_first(two: Crew) -> None:
    found: list[Answer] = []
    with HERE:  # this process is busy
        thread = threading.Thread(target=lambda: found.extend(asked(two, [question(8)])[0]))
        thread.start()
        thread.join(60)
    assert [each.verdict.status for each in found] == [Status.RACES]


def test_an_interrupt_ends_the_workers(two: Crew, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(crews, "LONG_SECONDS", 0.0)
    hired: list[Worker] = []
    real = Worker.answer

    def slow(self: Worker, each: Question) -> Answer:
        hired.append(self)
        return real(self, each)

    def interrupted(each: Question) -> Answer:
        while not hired:
            time.sleep(0.01)
        raise KeyboardInterrupt

    monkeypatch.setattr(Worker, "answer", slow)
    monkeypatch.setattr(crews, "answer", interrupted)
    with pytest.raises(KeyboardInterrupt):
        asked(two, [question(step) for step in (16, 8, 24, 4)])
    assert all(worker.ended for worker in hired)
    assert HERE.acquire(timeout=1)
    HERE.release()


def test_a_worker_ends_with_who_asks_it() -> None:
    """Also while it is at work: the end of its input is heard at any time."""
    worker = Worker()
    worker.answer(question(16))
    worker.let_go()
    worker._process.wait(30)


def test_a_forked_child_leaves_the_workers_of_its_parent_alone(two: Crew) -> None:
    with HERE:
        thread = threading.Thread(target=asked, args=(two, [question(16)]))
        thread.start()
        thread.join(60)
    (kept,) = two._free
    child = os.fork()
    if child == 0:
        two.forget()
        os._exit(0 if not two._free else 1)
    assert os.waitpid(child, 0)[1] == 0
    assert running(kept._process.pid)
    assert kept.answer(question(8)).verdict.status is Status.RACES


def test_a_fork_waits_for_another_threads_analysis() -> None:
    """So that no child begins with the solver in the middle of a question, or with a lock that nobody gives back."""
    inside, leave = threading.Event(), threading.Event()

    def analyse() -> None:
        with HERE:
            inside.set()
            leave.wait(60)

    thread = threading.Thread(target=analyse)
    thread.start()
    inside.wait(60)
    threading.Timer(0.2, leave.set).start()
    child = os.fork()
    if child == 0:
        os._exit(0 if leave.is_set() and HERE.acquire(timeout=5) else 1)
    assert os.waitpid(child, 0)[1] == 0
    thread.join()


@pytest.mark.parametrize("jobs", [1, 2])
def test_configs_keep_their_order(jobs: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(crews, "LONG_SECONDS", 0.0)
    found: list[Launch] = []
    with deciding(Analyst(Settings(scope="launch", jobs=jobs)), found.append):
        kernels.tuned[(4,)](torch.zeros(256, dtype=torch.int32), BLOCK=16)
    steps = {config.config["STEP"]: config.status.value for config in found[0].verdict.configs}
    assert list(steps.items()) == [(16, "ok"), (8, "races"), (24, "ok"), (20, "ok"), (4, "races"), (32, "ok")]
    crews.crew(jobs).close()


def test_launches_of_threads_are_told_in_the_order_they_were_made() -> None:
    """The second launch is decided while the first one still is, and yet told after it."""
    first, second = threading.Event(), threading.Event()
    told: list[Launch] = []

    class Waits(Analyst):
        def decide(self, captured: Any) -> Any:
            if threading.current_thread().name == "first":
                first.set()
                assert second.wait(60)
            decided = super().decide(captured)
            return decided

    def work(step: int) -> None:
        kernels.fill[(4,)](torch.zeros(256, dtype=torch.int32), STEP=step, BLOCK=16)

    with deciding(Waits(Settings(scope="launch")), told.append):
        thread = threading.Thread(target=work, args=(16,), name="first")
        thread.start()
        assert first.wait(60)
        work(8)
        assert told == []
        second.set()
        thread.join()
    assert [launch.verdict.status for launch in told] == [Status.OK, Status.RACES]


def test_bad_jobs() -> None:
    with pytest.raises(racefree.InputError, match="jobs must be"):
        Settings(jobs=0)
