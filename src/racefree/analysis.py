"""From a captured launch to its verdict: every config decided once, equal ones shared, nothing lost on the way."""

from __future__ import annotations

import hashlib
import threading
import time
import traceback
from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from racefree.config import Settings
from racefree.errors import Refusal, Refused
from racefree.graph.launch import Argument, Descriptor, LaunchFacts, Scalar, Storage, Tensor
from racefree.launch import ArgumentSummary, Launch, TensorMap
from racefree.verdict import THREAD_QUALIFIERS, ProofScope, RaceConfigVerdict, RaceVerdict, Status

if TYPE_CHECKING:
    from racefree.triton.launches import CapturedConfig, CapturedLaunch
    from racefree.ttir.generic import GenericModule

INTERNAL_ERROR = "internal-error"
"""The refusal kind of a config whose analysis failed by a fault of racefree itself."""

_WEAKEST_LAST = (ProofScope.ANY_PARAMS_ANY_GRID, ProofScope.THIS_PARAMS_ANY_GRID, ProofScope.THIS_PARAMS_THIS_GRID)
_WORST_FIRST = (Status.RACES, Status.UNSUPPORTED, Status.VACUOUS, Status.OK)


@dataclass(frozen=True, slots=True)
class Decided:
    """A launch with its verdict, and the addresses of the storages it may write (None: any of those it was given).

    Since the kernel does not run, what a snapshot of those storages holds is stale from then on.
    """

    launch: Launch
    storages_written: frozenset[int] | None


@dataclass(slots=True)
class Analyst:
    """Decides captured launches under one set of settings. Launches of several threads take turns.

    With `draws`, launches get pictures of the tensors they write. `tracebacks` collects what went wrong inside racefree
    itself, for a report of the fault.
    """

    settings: Settings
    draws: bool = False
    tracebacks: list[str] = field(default_factory=list)
    _known: dict[bytes, RaceConfigVerdict] = field(default_factory=dict)
    _proved: dict[bytes, tuple[RaceConfigVerdict, frozenset[str] | None]] = field(default_factory=dict)
    _written: dict[bytes, frozenset[str] | None] = field(default_factory=dict)
    _whole: dict[tuple[bytes, ...], RaceVerdict] = field(default_factory=dict)
    _maps: dict[bytes, tuple[TensorMap, ...]] = field(default_factory=dict)
    _turn: threading.RLock = field(default_factory=threading.RLock)

    def decide(self, captured: CapturedLaunch) -> Decided:
        """The launch with its verdict. Equal launches share one verdict object. Only an interrupt is ever raised."""
        with self._turn:
            try:
                asked = replace(captured, configs=tuple(_relocated(config) for config in captured.configs))
                keys = tuple(_config_key(config) for config in asked.configs)
                launch = _launch(asked, self._verdict(asked, keys))
                if self.draws:
                    launch = replace(launch, maps=self._drawn(asked, keys, launch))
                return Decided(launch, self._storages_written(captured, keys))
            except Exception as error:
                self.tracebacks.append(traceback.format_exc())
                failed = RaceConfigVerdict({}, Status.UNSUPPORTED, refusal=_internal(error))
                return Decided(_bare_launch(captured, merge((failed,), notes=captured.notes)), None)

    def _drawn(self, captured: CapturedLaunch, keys: tuple[bytes, ...], launch: Launch) -> tuple[TensorMap, ...]:
        """Pictures for the first config that races, or for the first one there is."""
        from racefree.pictures import tensor_maps
        from racefree.ttir.read import read_program

        verdicts = launch.verdict.configs
        chosen = next((i for i, verdict in enumerate(verdicts) if verdict.races), 0)
        if not verdicts:
            return ()
        config = captured.configs[chosen]
        if verdicts[chosen].status not in (Status.OK, Status.RACES) or config.module is None or config.facts is None:
            return ()
        if keys[chosen] not in self._maps:
            try:
                drawn = tensor_maps(read_program(config.module), config.facts, verdicts[chosen].races)
            except Exception:  # a picture that cannot be drawn must not change the answer
                self.tracebacks.append(traceback.format_exc())
                drawn = ()
            self._maps[keys[chosen]] = drawn
        return self._maps[keys[chosen]]

    def interrupted(self, captured: CapturedLaunch) -> Launch:
        """What to record for a launch whose analysis the user interrupted."""
        refusal = Refusal("interrupted", "the analysis of this launch was interrupted", captured.site)
        verdict = merge((RaceConfigVerdict({}, Status.UNSUPPORTED, refusal=refusal),), notes=captured.notes)
        return _bare_launch(captured, verdict)

    def _verdict(self, captured: CapturedLaunch, keys: tuple[bytes, ...]) -> RaceVerdict:
        start = time.perf_counter()
        labels = (captured.kernel, *captured.notes, *(repr(config.config) for config in captured.configs))
        identity = (*keys, "\0".join(labels).encode())
        verdict = self._whole.get(identity)
        if verdict is None:
            configs = tuple(self._config(c, key) for c, key in zip(captured.configs, keys, strict=True))
            merged = merge(configs, notes=captured.notes, seconds=time.perf_counter() - start)
            verdict = self._whole[identity] = replace(merged, memory_model=_memory_model(captured))
        return verdict

    def _config(self, config: CapturedConfig, key: bytes) -> RaceConfigVerdict:
        if config.failure is not None or config.facts is None or config.module is None:
            refusal = config.failure or Refusal(INTERNAL_ERROR, "the launch was taken without facts or a module")
            return RaceConfigVerdict(config.config, Status.UNSUPPORTED, refusal=refusal)
        known = self._known.get(key)
        if known is None:
            known = self._known[key] = self._for_any_threads(config, config.module, config.facts, key)
        races, fragile = (
            tuple(replace(record, config=config.config) for record in records)
            for records in (known.races, known.grid_fragile)
        )
        return replace(known, config=config.config, races=races, grid_fragile=fragile)

    def _for_any_threads(
        self, config: CapturedConfig, module: GenericModule, facts: LaunchFacts, key: bytes
    ) -> RaceConfigVerdict:
        """Configs that differ only in their threads share a proof that does not rest on which thread owns a lane."""
        shared = _config_key(config, threads=False)
        if shared in self._proved:
            verdict, self._written[key] = self._proved[shared]
            return replace(verdict, seconds=0.0)
        verdict = self._fresh(module, facts, key)
        if verdict.status is Status.OK and not THREAD_QUALIFIERS & set(verdict.qualifiers):
            self._proved[shared] = verdict, self._written[key]
        return verdict

    def _fresh(self, module: GenericModule, facts: LaunchFacts, key: bytes) -> RaceConfigVerdict:
        from racefree.graph.written import written_parameters
        from racefree.proof.rungs import Options, decide
        from racefree.ttir.read import read_program

        start = time.perf_counter()
        options = Options(lanes=self.settings.lanes, scope=self.settings.scope, budget=self.settings.budget)
        self._written[key] = None
        try:
            program = read_program(module)
            self._written[key] = written_parameters(program)
            verdict = decide(program, facts, options)
        except Refused as refused:
            verdict = RaceConfigVerdict({}, Status.UNSUPPORTED, refusal=refused.refusal)
        except Exception as error:
            self.tracebacks.append(traceback.format_exc())
            verdict = RaceConfigVerdict({}, Status.UNSUPPORTED, refusal=_internal(error))
        return replace(verdict, seconds=time.perf_counter() - start)

    def _storages_written(self, captured: CapturedLaunch, keys: tuple[bytes, ...]) -> frozenset[int] | None:
        written: set[int] = set()
        for config, key in zip(captured.configs, keys, strict=True):
            names = self._written.get(key)
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


def _memory_model(captured: CapturedLaunch) -> str:
    from racefree.proof.memory_model import memory_model

    facts = next((config.facts for config in captured.configs if config.facts is not None), None)
    return "" if facts is None else memory_model(facts.triton_version, facts.target).name


def _internal(error: Exception) -> Refusal:
    frames = traceback.extract_tb(error.__traceback__)
    where = f" in {frames[-1].name}" if frames else ""
    return Refusal(INTERNAL_ERROR, f"racefree failed{where}: {type(error).__name__}: {error}; please report this")


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


def _config_key(config: CapturedConfig, *, threads: bool = True) -> bytes:
    """Equal keys mean equal questions: same module, same facts, contents included; config kwargs do not count.

    Without `threads`, neither does the number of threads of a program instance.
    """
    digest = hashlib.blake2b(digest_size=32)

    def add(*values: object) -> None:
        digest.update(repr(values).encode())

    if config.module is None or config.facts is None:
        add(config.config, config.failure)
        return digest.digest()
    facts = config.facts
    add(config.module.text, facts.kernel, facts.grid, facts.target, facts.triton_version)
    if threads:
        add(facts.num_warps, facts.warp_size, facts.num_ctas)
    for name, argument in facts.arguments.items():
        add(name, type(argument).__name__)
        match argument:
            case Scalar():
                add(argument.value)
            case Tensor():
                _add_tensor(digest, argument)
            case Descriptor():
                add(argument.shape, argument.strides, argument.block_shape, argument.padding)
                _add_tensor(digest, argument.base)
    return digest.digest()


def _add_tensor(digest: hashlib.blake2b, tensor: Tensor) -> None:
    shape = (tensor.address, tensor.element_bytes, tensor.dtype, tensor.shape, tensor.strides)
    digest.update(repr(shape).encode())
    storage: Storage = tensor.storage
    digest.update(repr((storage.address, storage.nbytes, storage.contents is None, storage.why_unknown)).encode())
    if storage.contents is not None:
        digest.update(storage.contents.data)
