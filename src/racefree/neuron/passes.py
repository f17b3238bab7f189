"""The checks as compiler passes: found by name, switched by the compiler's flags, failing with an exception.

A pipeline asks `enabled(options)` for the passes its flags switch on, or `named(name, options)` for one, and calls `run` on
each with the modules of one logical core, core 0 first (a single module for one core). A pass that finds a fault raises; so
does one that cannot tell, because a pass that returns is a promise.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, fields
from typing import ClassVar, Protocol

from racefree.engines.check import Options as CheckOptions
from racefree.engines.check import check
from racefree.engines.records import EngineRace
from racefree.errors import InputError, RacefreeError, Refused
from racefree.neuron.document import Module
from racefree.neuron.legality import Violation, verify_split, verify_symbolic
from racefree.neuron.lnc import CoreRace, check_cores
from racefree.neuron.lowering import lower_all
from racefree.verdict import Status

__all__ = ["BarrierRace", "DataRace", "IllegalModule", "Options", "Pass", "enabled", "named", "names"]


class DataRace(RacefreeError):
    """The program has a data race: order the two instructions that the message names, or separate their buffers."""

    def __init__(self, race: EngineRace) -> None:
        self.race = race
        sides = [f"{'W' if side.write else 'R'}: {side.buffer} By: {side.name}" for side in (race.first, race.second)]
        super().__init__("Data race detected:\n" + "\n".join(sides))


class BarrierRace(RacefreeError):
    """Two cores touch the same bytes with no core barrier between. Put a CoreBarrier between the two instructions."""

    def __init__(self, race: CoreRace) -> None:
        self.race = race
        sides = [
            f"{'W' if side.write else 'R'}: {side.buffer} By: {side.name} (core {side.core})"
            for side in (race.first, race.second)
        ]
        super().__init__("Core barrier missing:\n" + "\n".join(sides))


class IllegalModule(RacefreeError):
    """The modules of a logical core do not fit together. The codes are the compiler's assertion numbers."""

    def __init__(self, violations: Sequence[Violation]) -> None:
        self.violations = tuple(violations)
        super().__init__("\n".join(f"[{one.code}] {one.function}: {one.message}" for one in violations))


@dataclass(frozen=True, slots=True)
class Options:
    """The compiler's flags with its defaults (`--enable-data-race-checker` is `enable_data_race_checker`), and ours.

    `compiler_exemptions` repeats the compiler's own rules, blind spots included. `order` is what the race check goes by.
    """

    enable_data_race_checker: bool = False
    enable_barrier_checker: bool = False
    enable_verifier: bool = False
    lnc_size: int = 1
    compiler_exemptions: bool = False
    order: str = "dependencies"

    @classmethod
    def from_flags(cls, flags: Sequence[str]) -> Options:
        """Options from command-line flags, `--flag` or `--flag=value`. Raises InputError for an unknown one."""
        known = {one.name: one for one in fields(cls)}
        given: dict[str, bool | int | str] = {}
        for flag in flags:
            name, _, value = flag.removeprefix("--").partition("=")
            key = name.replace("-", "_")
            if not flag.startswith("--") or key not in known:
                listed = ", ".join("--" + one.replace("_", "-") for one in known)
                raise InputError(f"unknown flag {flag!r}: expected one of {listed}")
            given[key] = _value(flag, value, known[key].default)
        return cls(**given)  # type: ignore[arg-type]


def _value(flag: str, text: str, default: object) -> bool | int | str:
    match default:
        case bool():
            if text in ("", "true", "1"):
                return True
            if text in ("false", "0"):
                return False
        case int():
            if text.isdigit() and int(text) > 0:
                return int(text)
        case str():
            if text:
                return text
    raise InputError(f"flag {flag!r} has no value that fits: expected one like {str(default).lower()}")


class Pass(Protocol):
    """A check over the modules of one logical core."""

    name: ClassVar[str]

    def run(self, module: Module | Sequence[Module]) -> None:
        """Raises when the modules are at fault, and Refused when that cannot be told."""
        ...


def _modules(module: Module | Sequence[Module]) -> tuple[Module, ...]:
    return (module,) if isinstance(module, Module) else tuple(module)


@dataclass(frozen=True, slots=True)
class BirRaceCheck:
    """Races between the engines of each core. Raises DataRace for the first one."""

    name: ClassVar[str] = "bir_racecheck"
    options: Options = Options(enable_data_race_checker=True)

    def run(self, module: Module | Sequence[Module]) -> None:
        options = CheckOptions(
            first_only=True, limit=1, repair=False, compiler_exemptions=self.options.compiler_exemptions
        )
        for one in _modules(module):
            for program in lower_all(one):
                verdict = check(program, order=self.options.order, options=options)
                for order in verdict.orders:
                    if order.races:
                        raise DataRace(order.races[0])
                for refusal in verdict.refusals:
                    raise Refused(refusal.kind, refusal.reason, refusal.source)
                if verdict.status is not Status.OK:
                    raise Refused("unknown", f"no verdict on {program.name}")


@dataclass(frozen=True, slots=True)
class LncBarrierCheck:
    """Races between the cores of a logical core. Raises BarrierRace for the first one; a single core passes."""

    name: ClassVar[str] = "lnc_barriercheck"
    options: Options = Options(enable_barrier_checker=True)

    def run(self, module: Module | Sequence[Module]) -> None:
        order = "dependencies" if self.options.order == "both" else self.options.order
        rules = self.options.compiler_exemptions
        for verdict in check_cores(_modules(module), order=order, compiler_rules=rules):
            for race in verdict.races:
                raise BarrierRace(race)
            for refusal in verdict.refusals:
                raise Refused(refusal.kind, refusal.reason, refusal.source)


@dataclass(frozen=True, slots=True)
class LncVerifier:
    """The structural rules: those before the split for one symbolic module, those after it for several."""

    name: ClassVar[str] = "lnc_verifier"
    options: Options = Options(enable_verifier=True)

    def run(self, module: Module | Sequence[Module]) -> None:
        modules = _modules(module)
        if len(modules) > 1:
            violations = verify_split(modules)
        else:
            violations = verify_symbolic(modules[0], lnc_size=self.options.lnc_size)
        if violations:
            raise IllegalModule(violations)


_PASSES: dict[str, tuple[Callable[[Options], Pass], str]] = {
    LncVerifier.name: (LncVerifier, "enable_verifier"),
    LncBarrierCheck.name: (LncBarrierCheck, "enable_barrier_checker"),
    BirRaceCheck.name: (BirRaceCheck, "enable_data_race_checker"),
}
"""In the order in which the compiler runs them, with the flag that switches each on."""


def names() -> tuple[str, ...]:
    """The names of all passes, in the order in which they run."""
    return tuple(_PASSES)


def named(name: str, options: Options | None = None) -> Pass:
    """One pass, whether its flag is set or not. Raises InputError for a name that no pass has."""
    if name not in _PASSES:
        raise InputError(f"unknown pass {name!r}: expected one of {', '.join(_PASSES)}")
    make, _ = _PASSES[name]
    return make(options or Options())


def enabled(options: Options) -> tuple[Pass, ...]:
    """The passes that the options switch on, in the order in which they run."""
    return tuple(make(options) for make, flag in _PASSES.values() if getattr(options, flag))
