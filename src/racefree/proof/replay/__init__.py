"""Re-evaluates accesses of a launch with plain integers and no solver."""

from racefree.proof.replay.atomics import left_behind
from racefree.proof.replay.enumeration import Enumeration, Race, Rules, enumerate_races, race_inside
from racefree.proof.replay.events import Event, Fence, Options, Step, Steps, Unreplayable
from racefree.proof.replay.lanes import Lanes
from racefree.proof.replay.machine import steps
from racefree.proof.replay.memory import Memory, launch_memory, pointer_roots, untouched_memory
from racefree.proof.replay.run import Oracle, SharedBytes, Where, confirm, drive, run_program, shared_bytes

__all__ = [
    "Enumeration",
    "Event",
    "Fence",
    "Lanes",
    "Memory",
    "Options",
    "Oracle",
    "Race",
    "Rules",
    "SharedBytes",
    "Step",
    "Steps",
    "Unreplayable",
    "Where",
    "confirm",
    "drive",
    "enumerate_races",
    "launch_memory",
    "left_behind",
    "pointer_roots",
    "race_inside",
    "run_program",
    "shared_bytes",
    "steps",
    "untouched_memory",
]
