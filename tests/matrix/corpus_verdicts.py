"""Decides every corpus file with the packages of this environment and prints what came out, as JSON.

python tests/matrix/corpus_verdicts.py [--keep FOLDER | --kept FOLDER]

With `--keep` the launches are also saved to a folder; with `--kept` those are decided, which needs neither Triton nor torch.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Iterator
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

from racefree.analysis import Analyst
from racefree.config import Settings
from racefree.launch import Launch
from racefree.triton.launches import CapturedLaunch
from racefree.triton.saved import from_json, to_json

CORPUS = Path(__file__).resolve().parent.parent / "corpus"
PACKAGES = ("triton", "z3-solver", "islpy", "numpy")


def said(launch: Launch) -> dict[str, Any]:
    """What must not depend on the packages: the status, what was proved, and which pairs of lines race."""
    verdict = launch.verdict
    pairs = set()
    for race in launch.races:
        first, second = sorted((race.first.source[1], race.second.source[1]))
        pairs.add((first, second, "WAW" if race.race_type == "WAW" else "RW"))
    return {
        "status": verdict.status.value,
        "scope": verdict.scope.value if verdict.scope else None,
        "qualifiers": list(verdict.qualifiers),
        "pairs": sorted(map(list, pairs)),
        "refusals": [config.refusal.kind for config in verdict.configs if config.refusal is not None],
    }


def captured() -> Iterator[tuple[str, CapturedLaunch]]:
    sys.path.insert(0, str(CORPUS.parent / "soundness"))
    from corpus_files import load, parse

    from racefree.triton.capture import capture_one

    for path in sorted(CORPUS.glob("*.py")):
        entry, module = parse(path), load(path)
        arguments = module.arguments()
        yield path.stem, capture_one(module.kernel, [], arguments | {"num_warps": entry.num_warps}, entry.grid)


def kept(folder: Path) -> Iterator[tuple[str, CapturedLaunch]]:
    for path in sorted(folder.glob("*.json")):
        yield path.stem, from_json(path.read_text(encoding="utf-8"), name=path.name)


def versions() -> dict[str, str]:
    found = {"python": sys.version.split()[0]}
    for name in PACKAGES:
        try:
            found[name] = version(name)
        except PackageNotFoundError:
            found[name] = "none"
    return found


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--keep", type=Path)
    parser.add_argument("--kept", type=Path)
    options = parser.parse_args()
    analysts = {lanes: Analyst(Settings(lanes=lanes)) for lanes in ("default", "strict")}
    verdicts = {}
    for name, launch in captured() if options.kept is None else kept(options.kept):
        if options.keep is not None:
            options.keep.mkdir(parents=True, exist_ok=True)
            (options.keep / f"{name}.json").write_text(to_json(launch), encoding="utf-8")
        for lanes, analyst in analysts.items():
            verdicts[f"{name} {lanes}"] = said(analyst.decide(launch).launch)
    faults = [fault for analyst in analysts.values() for fault in analyst.tracebacks]
    json.dump({"versions": versions(), "verdicts": verdicts, "faults": faults}, sys.stdout, indent=1)


if __name__ == "__main__":
    main()
