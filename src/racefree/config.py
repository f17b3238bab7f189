"""What a user may set for an analysis, where from, and the values that hold otherwise."""

from __future__ import annotations

import os
import tomllib
from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import Any, Literal, get_args

from racefree.errors import InputError

Lanes = Literal["default", "strict"]
ScopeWanted = Literal["any", "launch"]

TARGET_VARIABLE = "RACEFREE_TARGET"


@dataclass(frozen=True, slots=True)
class Settings:
    """`target` is what kernels are compiled for (`cuda:80`, `hip:gfx942`), `lanes` how one program's lanes are ordered.

    Without a target, that of the environment variable `RACEFREE_TARGET` is taken, else cuda:80.
    `scope` "any" tries proofs for every grid before the launch's own; "launch" asks only about the launch.
    `budget` scales how long a proof may search: for all interleavings, and for a proof of any grid (about 2 seconds for a
    launch that is decided already, 30 for another).
    `jobs` is how many processes analyse at once, by default one for each core, at most 8; 1 starts none.
    `baseline` is a file of races that are known and not reported again, `cache` a folder in which proofs are kept for later
    runs; in a pyproject.toml both are relative to that file.
    `interpret` runs proved launches in Triton's interpreter, so that later launches find what they compute.
    """

    target: str | None = None
    lanes: Lanes = "default"
    scope: ScopeWanted = "any"
    budget: float = 1.0
    baseline: str | None = None
    jobs: int | None = None
    cache: str | None = None
    interpret: bool = False

    def __post_init__(self) -> None:
        if self.lanes not in get_args(Lanes):
            raise InputError(f"lanes must be one of {', '.join(get_args(Lanes))}, not {self.lanes!r}")
        if self.scope not in get_args(ScopeWanted):
            raise InputError(f"scope must be one of {', '.join(get_args(ScopeWanted))}, not {self.scope!r}")
        if isinstance(self.budget, bool) or not isinstance(self.budget, int | float) or self.budget <= 0:
            raise InputError(f"budget must be a positive factor, not {self.budget!r}")
        if self.jobs is not None and (isinstance(self.jobs, bool) or not isinstance(self.jobs, int) or self.jobs < 1):
            raise InputError(f"jobs must be a whole number of at least 1, not {self.jobs!r}")
        if self.target is not None and not isinstance(self.target, str):
            raise InputError(f"target must be a text like cuda:80 or hip:gfx942, not {self.target!r}")
        if self.baseline is not None and not isinstance(self.baseline, str):
            raise InputError(f"baseline must be the name of a file, not {self.baseline!r}")
        if not isinstance(self.interpret, bool):
            raise InputError(f"interpret must be true or false, not {self.interpret!r}")
        if self.cache is not None and not isinstance(self.cache, str):
            raise InputError(f"cache must be the name of a folder, not {self.cache!r}")


def settings(*, project: Path | None = None, **given: Any) -> Settings:
    """Explicit values first, then `RACEFREE_TARGET`, then `[tool.racefree]` of the pyproject.toml at or above `project`.

    A value of None counts as not given. Raises InputError for an unknown key or an impossible value.
    """
    found: dict[str, Any] = _project_table(project) if project is not None else {}
    if os.environ.get(TARGET_VARIABLE):
        found["target"] = os.environ[TARGET_VARIABLE]  # stronger than the project's, weaker than what the caller gives
    found.update({name: value for name, value in given.items() if value is not None})
    return replace(Settings(), **found)


def _project_table(start: Path) -> dict[str, Any]:
    for folder in (start, *start.parents):
        path = folder / "pyproject.toml"
        if path.is_file():
            return _checked(path)
    return {}


def _checked(path: Path) -> dict[str, Any]:
    try:
        document = tomllib.loads(path.read_text(encoding="utf-8"))
    except (tomllib.TOMLDecodeError, OSError, UnicodeDecodeError) as error:
        raise InputError(f"{path}: {error}") from error
    table = document.get("tool", {}).get("racefree", {})
    if not isinstance(table, dict):
        raise InputError(f"{path}: [tool.racefree] must be a table, not {table!r}")
    known = {field.name for field in fields(Settings)}
    unknown = sorted(set(table) - known)
    if unknown:
        raise InputError(
            f"{path}: unknown key {unknown[0]!r} in [tool.racefree]; known keys: {', '.join(sorted(known))}"
        )
    try:
        Settings(**table)
    except InputError as error:
        raise InputError(f"{path}: [tool.racefree]: {error}") from error
    beside = {
        name: str(path.parent / table[name]) for name in ("baseline", "cache") if isinstance(table.get(name), str)
    }
    return table | beside
