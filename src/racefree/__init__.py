"""racefree decides, without the accelerator, whether an accelerator kernel has a data race.

Everything public is reachable from here and loaded when first used, so that `import racefree` stays cheap.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from racefree.errors import InputError, MissingPackage, RacefreeError, Refusal, UnsupportedVersion
    from racefree.launch import Launch
    from racefree.session import (
        CompiledRaceDetector,
        NullRaceDetector,
        RaceDetector,
        analyze,
        launches,
        load,
        save,
        trace,
    )
    from racefree.verdict import (
        CompiledRaceRecord,
        ProofScope,
        RaceAccess,
        RaceConfigVerdict,
        RaceVerdict,
        Replay,
        ReplayOutcome,
        Status,
    )

__version__ = "0.1.0"

_HOME = {
    "CompiledRaceDetector": "session",
    "CompiledRaceRecord": "verdict",
    "InputError": "errors",
    "Launch": "launch",
    "MissingPackage": "errors",
    "NullRaceDetector": "session",
    "ProofScope": "verdict",
    "RaceAccess": "verdict",
    "RaceConfigVerdict": "verdict",
    "RaceDetector": "session",
    "RaceVerdict": "verdict",
    "RacefreeError": "errors",
    "Refusal": "errors",
    "Replay": "verdict",
    "ReplayOutcome": "verdict",
    "Status": "verdict",
    "UnsupportedVersion": "errors",
    "analyze": "session",
    "launches": "session",
    "load": "session",
    "save": "session",
    "trace": "session",
}

__all__ = [
    "CompiledRaceDetector",
    "CompiledRaceRecord",
    "InputError",
    "Launch",
    "MissingPackage",
    "NullRaceDetector",
    "ProofScope",
    "RaceAccess",
    "RaceConfigVerdict",
    "RaceDetector",
    "RaceVerdict",
    "RacefreeError",
    "Refusal",
    "Replay",
    "ReplayOutcome",
    "Status",
    "UnsupportedVersion",
    "analyze",
    "launches",
    "load",
    "save",
    "trace",
]


def __getattr__(name: str) -> Any:
    if name not in _HOME:
        raise AttributeError(f"module 'racefree' has no attribute {name!r}")
    return getattr(import_module(f"racefree.{_HOME[name]}"), name)
