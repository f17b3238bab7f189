"""Checks the verdicts on a launch by running it in Triton's interpreter; what disagrees is a fault of racefree."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from racefree.analysis import merge
from racefree.eager import verdicts
from racefree.eager.trace import TooMuch
from racefree.errors import Refusal, Refused
from racefree.graph.launch import LaunchFacts
from racefree.graph.relocate import relocated
from racefree.keys import config_key
from racefree.launch import Launch
from racefree.verdict import RaceConfigVerdict, Replay, ReplayOutcome, Status
from racefree.workers.question import INTERNAL_ERROR

if TYPE_CHECKING:
    from racefree.triton.interpreter import Running
    from racefree.triton.launches import CapturedConfig, CapturedLaunch

MOST_PROGRAMS = 256
SECONDS = 30.0


@dataclass(slots=True)
class Replayer:
    """Checks launches, each config of equal launches once. `most` is how many program instances it runs of one launch."""

    most: int = MOST_PROGRAMS
    seconds: float = SECONDS
    tracebacks: list[str] = field(default_factory=list)
    _known: dict[tuple[bytes, Status], Replay] = field(default_factory=dict)

    def checked(self, launch: Launch, captured: CapturedLaunch, running: Sequence[Running | None]) -> Launch:
        """The launch with what the runs said. A config whose run disagrees is `unsupported`: neither side is to be trusted.

        To be called while the launch is being made, as long as its tensors hold what it would have found.
        """
        verdict = launch.verdict
        if not any(config.status in (Status.OK, Status.RACES) for config in verdict.configs):
            return launch
        configs = tuple(
            self._config(*each)
            for each in zip(verdict.configs, captured.configs, _padded(running, captured), strict=True)
        )
        merged = merge(configs, notes=verdict.notes, seconds=verdict.seconds)
        return replace(launch, verdict=replace(merged, memory_model=verdict.memory_model))

    def _config(
        self, verdict: RaceConfigVerdict, captured: CapturedConfig, running: Running | None
    ) -> RaceConfigVerdict:
        if verdict.status not in (Status.OK, Status.RACES) or captured.facts is None:
            return verdict
        key = config_key(captured), verdict.status
        if key not in self._known:
            self._known[key] = self._replay(verdict, captured, captured.facts, running)
        found = self._known[key]
        if found.outcome is not ReplayOutcome.DISAGREES:
            return replace(verdict, replay=found)
        refusal = Refusal(INTERNAL_ERROR, f"{found.reason}; one of the two is wrong, please report this")
        return RaceConfigVerdict(
            verdict.config, Status.UNSUPPORTED, refusal=refusal, seconds=verdict.seconds, replay=found
        )

    def _replay(
        self, verdict: RaceConfigVerdict, captured: CapturedConfig, facts: LaunchFacts, running: Running | None
    ) -> Replay:
        from racefree.triton.forked import Failed, in_fork
        from racefree.triton.interpreter import Interpreter, Unrunnable
        from racefree.ttir.read import read_program

        why_not = _obstacle(facts) if running is not None else "its arguments are not at hand"
        if running is None or captured.module is None or why_not:
            return verdicts.not_replayed(why_not)
        program = read_program(captured.module)
        plan = verdicts.plan(verdict, program, facts, most=self.most)
        if isinstance(plan, Replay):
            return plan
        storages, shifts = _storages(facts), _shifts(facts, relocated(facts, captured.module.text))

        def work() -> Replay:
            found = verdicts.not_replayed("nothing was run")
            try:
                interpreter = Interpreter(running, storages)
                runs = []
                for order in plan.orders:
                    runs.append(interpreter.run(order, taking_turns=plan.taking_turns))
                    found = verdicts.judge(verdict, program, runs, shifts)
                    if found.outcome is not ReplayOutcome.NOT_REPLAYED:
                        break
            except (Unrunnable, TooMuch, Refused) as error:
                return verdicts.not_replayed(str(error))
            return found

        found = in_fork(work, seconds=self.seconds)
        if not isinstance(found, Failed):
            return found  # type: ignore[no-any-return]
        if found.traceback:
            self.tracebacks.append(found.traceback)
        return verdicts.not_replayed(found.reason)


def without_kernel(launch: Launch, why: str) -> Launch:
    """A launch of which no kernel is at hand: what was claimed about it is not checked, and `why` says so."""
    configs = tuple(
        replace(config, replay=verdicts.not_replayed(why)) if config.status in (Status.OK, Status.RACES) else config
        for config in launch.verdict.configs
    )
    return replace(launch, verdict=replace(launch.verdict, configs=configs))


def _padded(running: Sequence[Running | None], captured: CapturedLaunch) -> Sequence[Running | None]:
    return running if len(running) == len(captured.configs) else [None] * len(captured.configs)


def _obstacle(facts: LaunchFacts) -> str:
    """Why the arguments cannot be given to a run, "" if they can."""
    for name, tensor in facts.tensors.items():
        if tensor.storage.why_unknown.startswith("a meta tensor"):
            return f"{name} is a meta tensor, which has no memory"
    return ""


def _storages(facts: LaunchFacts) -> list[tuple[int, int]]:
    return [(tensor.storage.address, tensor.storage.nbytes) for tensor in facts.tensors.values()]


def _shifts(facts: LaunchFacts, asked: LaunchFacts) -> dict[str, int]:
    """By tensor, how far it lies beyond the place that the analysis takes it to lie at."""
    taken = asked.tensors
    return {name: tensor.address - taken[name].address for name, tensor in facts.tensors.items()}
