"""From a captured launch to its verdict: every config decided once, equal ones shared, nothing lost on the way."""

from __future__ import annotations

import traceback
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING

from racefree.config import Settings
from racefree.errors import Refusal
from racefree.graph.launch import Argument, Descriptor, Scalar, Tensor
from racefree.keys import block_threads, config_key, with_options
from racefree.launch import ArgumentSummary, Launch, Pictures, TensorMap
from racefree.verdict import THREAD_QUALIFIERS, ProofScope, RaceConfigVerdict, RaceVerdict, Status
from racefree.workers.crew import HERE, crew
from racefree.workers.question import INTERNAL_ERROR, Answer, Question, internal

if TYPE_CHECKING:
    from racefree.cache import Cache
    from racefree.proof.rungs import Options
    from racefree.triton.launches import CapturedConfig, CapturedLaunch

_WEAKEST_LAST = (ProofScope.ANY_PARAMS_ANY_GRID, ProofScope.THIS_PARAMS_ANY_GRID, ProofScope.THIS_PARAMS_THIS_GRID)
_WORST_FIRST = (Status.RACES, Status.UNSUPPORTED, Status.VACUOUS, Status.OK)


@dataclass(frozen=True, slots=True)
class Decided:
    """A launch with its verdict, and the addresses of the storages it may write (None: any of those it was given).

    Since the kernel does not run, what a snapshot of those storages holds is stale from then on.
    """

    launch: Launch
    storages_written: frozenset[int] | None


@dataclass(frozen=True, slots=True)
class _Asked:
    """A launch as it is asked about, with a key for each config: equal keys are equal questions."""

    launch: CapturedLaunch
    keys: tuple[bytes, ...]

    @property
    def pairs(self) -> Iterator[tuple[bytes, CapturedConfig]]:
        return zip(self.keys, self.launch.configs, strict=True)


@dataclass(slots=True)
class Analyst:
    """Decides captured launches under one set of settings, those of several threads side by side.

    `draws` says which launches get pictures of the tensors they write. `tracebacks` collects what went wrong inside racefree
    itself, for a report of the fault.
    """

    settings: Settings
    draws: Pictures = "nothing"
    tracebacks: list[str] = field(default_factory=list)
    _answers: dict[bytes, Answer] = field(default_factory=dict)
    _proved: dict[bytes, tuple[int, Answer]] = field(default_factory=dict)
    _whole: dict[tuple[bytes, ...], RaceVerdict] = field(default_factory=dict)
    _maps: dict[bytes, tuple[TensorMap, ...]] = field(default_factory=dict)
    _cache: Cache | None = None

    def __post_init__(self) -> None:
        if self.settings.cache is not None:
            from racefree.cache import Cache

            self._cache = Cache.opened(Path(self.settings.cache))

    def decide(self, captured: CapturedLaunch) -> Decided:
        """The launch with its verdict. Equal launches share one verdict object. Only an interrupt is ever raised."""
        return self.decide_all((captured,))[0]

    def decide_all(self, captured: Sequence[CapturedLaunch]) -> list[Decided]:
        """The same for several launches, in their order; what is asked about them is shared among processes."""
        asked = [self._asked(launch) for launch in captured]
        self._answer([pair for each in asked if isinstance(each, _Asked) for pair in each.pairs])
        return [self._decided(launch, each) for launch, each in zip(captured, asked, strict=True)]

    def _asked(self, captured: CapturedLaunch) -> _Asked | Exception:
        try:
            asked = replace(captured, configs=tuple(_relocated(config) for config in captured.configs))
            return _Asked(asked, tuple(config_key(config) for config in asked.configs))
        except Exception as error:
            self.tracebacks.append(traceback.format_exc())
            return error

    def _decided(self, captured: CapturedLaunch, asked: _Asked | Exception) -> Decided:
        try:
            if isinstance(asked, Exception):
                return _failed(captured, asked)
            launch = _launch(asked.launch, self._verdict(asked))
            if self.draws != "nothing":
                launch = replace(launch, maps=self._drawn(asked.launch, asked.keys, launch))
            return Decided(launch, self._storages_written(captured, asked.keys))
        except Exception as error:
            self.tracebacks.append(traceback.format_exc())
            return _failed(captured, error)

    def _drawn(self, captured: CapturedLaunch, keys: tuple[bytes, ...], launch: Launch) -> tuple[TensorMap, ...]:
        """Pictures for the first config that races, or for the first one there is."""
        from racefree.pictures import KEPT_RUNS, KEPT_SECONDS, MOST_RUNS, SECONDS, tensor_maps
        from racefree.ttir.read import read_program

        verdicts = launch.verdict.configs
        chosen = next((i for i, verdict in enumerate(verdicts) if verdict.races), 0)
        if not verdicts:
            return ()
        config = captured.configs[chosen]
        if verdicts[chosen].status not in (Status.OK, Status.RACES) or config.module is None or config.facts is None:
            return ()
        if self.draws == "races" and not verdicts[chosen].races:
            return ()
        if keys[chosen] not in self._maps:
            small = self.draws == "races"
            bounds = (KEPT_SECONDS, KEPT_RUNS) if small else (SECONDS, MOST_RUNS)
            try:
                with HERE:
                    program = read_program(config.module)
                    drawn = tensor_maps(
                        program, config.facts, verdicts[chosen].races, seconds=bounds[0], most_runs=bounds[1]
                    )
            except Exception:  # a picture that cannot be drawn must not change the answer
                self.tracebacks.append(traceback.format_exc())
                drawn = ()
            self._maps[keys[chosen]] = drawn
        return self._maps[keys[chosen]]

    def so_far(self, captured: CapturedLaunch) -> Launch:
        """What to record for a launch of those that were being decided when the user interrupted."""
        asked = self._asked(captured)
        if isinstance(asked, _Asked) and all(k in self._answers or not _is_question(c) for k, c in asked.pairs):
            return self._decided(captured, asked).launch
        return self.interrupted(captured)

    def interrupted(self, captured: CapturedLaunch) -> Launch:
        """What to record for a launch whose analysis the user interrupted."""
        refusal = Refusal("interrupted", "the analysis of this launch was interrupted", captured.site)
        verdict = merge((RaceConfigVerdict({}, Status.UNSUPPORTED, refusal=refusal),), notes=captured.notes)
        return _bare_launch(captured, verdict)

    def _verdict(self, asked: _Asked) -> RaceVerdict:
        captured = asked.launch
        labels = (captured.kernel, *captured.notes, *(repr(config.config) for config in captured.configs))
        identity = (*asked.keys, "\0".join(labels).encode())
        verdict = self._whole.get(identity)
        if verdict is None:
            configs = tuple(self._config(config, key) for key, config in asked.pairs)
            seconds = sum({key: config.seconds for key, config in zip(asked.keys, configs, strict=True)}.values())
            merged = merge(configs, notes=captured.notes, seconds=seconds)
            verdict = self._whole[identity] = replace(merged, memory_model=_memory_model(captured))
        return verdict

    def _config(self, config: CapturedConfig, key: bytes) -> RaceConfigVerdict:
        if not _is_question(config):
            refusal = config.failure or Refusal(INTERNAL_ERROR, "the launch was taken without facts or a module")
            return RaceConfigVerdict(config.config, Status.UNSUPPORTED, refusal=refusal)
        known = self._answers[key].verdict
        races, fragile = (
            tuple(replace(record, config=config.config) for record in records)
            for records in (known.races, known.grid_fragile)
        )
        return replace(known, config=config.config, races=races, grid_fragile=fragile)

    def _answer(self, pairs: Sequence[tuple[bytes, CapturedConfig]]) -> None:
        """Fills in the answers to what is not known yet.

        Configs that differ only in their threads share a proof that does not rest on which thread owns a lane: fewer
        threads hold fewer replicas. So the one with the most is asked about before the others.
        """
        unknown = {key: config for key, config in pairs if key not in self._answers and _is_question(config)}
        alike = {key: config_key(config, threads=False) for key, config in unknown.items()}
        by_threads = sorted(unknown, key=lambda key: block_threads(unknown[key]))
        leaders = {alike[key]: key for key in by_threads}
        self._share(unknown, alike)
        self._fetch({key: config for key, config in unknown.items() if leaders[alike[key]] == key})
        self._share(unknown, alike)
        self._fetch(unknown)

    def _share(self, unknown: dict[bytes, CapturedConfig], alike: dict[bytes, bytes]) -> None:
        """Answers, of what is still `unknown`, whatever a proof for at least as many threads answers."""
        for key, group in alike.items():
            threads, proof = self._proved.get(group, (0, None))
            if key not in self._answers and proof is not None and block_threads(unknown[key]) <= threads:
                self._answers[key] = replace(proof, verdict=replace(proof.verdict, seconds=0.0))

    def _fetch(self, unknown: dict[bytes, CapturedConfig]) -> None:
        options = self._options()
        kept = self._kept(options, (key for key in unknown if key not in self._answers))
        for key, answer in kept.items():
            self._learn(key, unknown[key], answer)
        keys = [key for key in unknown if key not in self._answers]

        def got(index: int, answer: Answer) -> None:
            key = keys[index]
            self._learn(key, unknown[key], answer)
            if self._cache is not None:
                self._cache.keep(with_options(key, options), answer)

        asked = (unknown[key] for key in keys)
        questions = [Question(c.module, c.facts, options) for c in asked if c.module and c.facts]
        if questions:
            crew(self.settings.jobs).ask(questions, got)

    def _kept(self, options: Options, keys: Iterable[bytes]) -> dict[bytes, Answer]:
        """What earlier runs proved of the questions with these keys."""
        if self._cache is None:
            return {}
        full = {with_options(key, options): key for key in keys}
        return {full[key]: answer for key, answer in self._cache.answers(full).items()}

    def _learn(self, key: bytes, config: CapturedConfig, answer: Answer) -> None:
        self._answers[key] = answer
        if answer.fault:
            self.tracebacks.append(answer.fault)
        if answer.verdict.status is Status.OK and not THREAD_QUALIFIERS & set(answer.verdict.qualifiers):
            group, threads = config_key(config, threads=False), block_threads(config)
            if threads >= self._proved.get(group, (0, answer))[0]:
                self._proved[group] = threads, answer

    def _options(self) -> Options:
        from racefree.proof.rungs import Options

        return Options(lanes=self.settings.lanes, scope=self.settings.scope, budget=self.settings.budget)

    def _storages_written(self, captured: CapturedLaunch, keys: tuple[bytes, ...]) -> frozenset[int] | None:
        written: set[int] = set()
        for config, key in zip(captured.configs, keys, strict=True):
            names = self._answers[key].written if key in self._answers else None
            if names is None or config.facts is None:
                return None
            for name in names:
                match config.facts.arguments.get(name):
                    case Tensor() as tensor:
                        written.add(tensor.storage.address)
                    case Descriptor() as descriptor:
                        written.add(descriptor.base.storage.address)
                    case _:
                        return None
        return frozenset(written)


def _is_question(config: CapturedConfig) -> bool:
    return config.failure is None and config.facts is not None and config.module is not None


def _failed(captured: CapturedLaunch, error: Exception) -> Decided:
    verdict = RaceConfigVerdict({}, Status.UNSUPPORTED, refusal=internal(error))
    return Decided(_bare_launch(captured, merge((verdict,), notes=captured.notes)), None)


def _memory_model(captured: CapturedLaunch) -> str:
    from racefree.proof.memory_model import memory_model

    facts = next((config.facts for config in captured.configs if config.facts is not None), None)
    return "" if facts is None else memory_model(facts.triton_version, facts.target).name


def merge(configs: tuple[RaceConfigVerdict, ...], *, notes: Iterable[str] = (), seconds: float = 0.0) -> RaceVerdict:
    """The verdict on a launch: the worst status of its configs, the weakest scope, all qualifiers.

    A launch without any config that could be analysed is `unsupported`.
    """
    found = {config.status for config in configs}
    status = next((s for s in _WORST_FIRST if s in found), Status.UNSUPPORTED)
    scopes = [config.scope for config in configs if config.scope is not None]
    scope = max(scopes, key=_WEAKEST_LAST.index) if status is Status.OK and scopes else None
    stated = [c.qualifiers for c in configs if c.status in (Status.OK, Status.RACES)]
    qualifiers = tuple(sorted({qualifier for qualifiers in stated for qualifier in qualifiers}))
    return RaceVerdict(status, scope, qualifiers, configs, tuple(notes), seconds=seconds)


def _launch(captured: CapturedLaunch, verdict: RaceVerdict) -> Launch:
    facts = next((config.facts for config in captured.configs if config.facts is not None), None)
    launch = _bare_launch(captured, verdict)
    if facts is None:
        return launch
    arguments = tuple(ArgumentSummary(name, _summary(argument)) for name, argument in facts.arguments.items())
    return replace(launch, grid=facts.grid, target=facts.target, arguments=arguments)


def _bare_launch(captured: CapturedLaunch, verdict: RaceVerdict) -> Launch:
    return Launch(captured.kernel, captured.site, captured.launch_site, None, "", (), verdict)


def _summary(argument: Argument) -> str:
    match argument:
        case Scalar():
            return repr(argument.value)
        case Tensor():
            return f"{argument.dtype}{list(argument.shape)} strides {argument.strides}"
        case Descriptor():
            return f"descriptor of {argument.base.dtype}{list(argument.shape)}, block {list(argument.block_shape)}"


def _relocated(config: CapturedConfig) -> CapturedConfig:
    """The config with its tensors where they are taken to lie, so that equal launches are one question."""
    from racefree.graph.relocate import relocated

    if config.facts is None or config.module is None:
        return config
    return replace(config, facts=relocated(config.facts, config.module.text))
