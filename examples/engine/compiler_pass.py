"""Runs the race check as a pass of a compiler would: on a clean program, on a racy one, and with the compiler's own rules."""

from pathlib import Path

from racefree.errors import Refused
from racefree.neuron import passes
from racefree.neuron.reading import load

HERE = Path(__file__).parent

options = passes.Options.from_flags(["--enable-data-race-checker", "--enable-barrier-checker"])
for name in ("clean", "racy"):
    module = load(HERE / f"{name}.json")
    for one in passes.enabled(options):
        try:
            one.run(module)
        except passes.DataRace as race:
            print(f"{name}: {one.name}: {race}")
        except Refused as refused:
            print(f"{name}: {one.name}: not analysed, {refused}")
        else:
            print(f"{name}: {one.name}: passed")
