"""The process behind `isl_worker`: reads equations as JSON lines, answers each with a solution, `null`, or an error word.

Run by file name, so that it imports nothing of racefree and never the user's main module.
"""

from __future__ import annotations

import json
import sys
from typing import Any

import islpy

MEMORY_LIMIT_BYTES = 4 << 30


def solve(steps: list[int], bounds: list[int], target: int) -> list[int] | None:
    """One integer point of sum(step_i * z_i) = target, 0 <= z_i <= bound_i, or None when there is none."""
    names = [f"z{i}" for i in range(len(steps))]
    ranges = [f"0 <= {name} <= {bound}" for name, bound in zip(names, bounds, strict=True)]
    total = "0" + "".join(f" + {step}{name}" for step, name in zip(steps, names, strict=True))
    points = islpy.BasicSet(f"{{ [{', '.join(names)}] : {' and '.join([f'{total} = {target}', *ranges])} }}")
    if points.is_empty():
        return None
    point = points.sample_point()
    values = (point.get_coordinate_val(islpy.dim_type.set, i) for i in range(len(steps)))
    return [int(value.to_str()) for value in values]


def _limit_memory() -> None:
    try:
        import resource
    except ImportError:
        return
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY_LIMIT_BYTES, MEMORY_LIMIT_BYTES))


def main() -> None:
    """Serve until standard input closes."""
    _limit_memory()
    sys.stdout.write("ready\n")
    sys.stdout.flush()
    for line in sys.stdin:
        request: dict[str, Any] = json.loads(line)
        answer: dict[str, Any] = {"id": request["id"]}
        try:
            answer["values"] = solve(request["steps"], request["bounds"], request["target"])
        except Exception as error:  # whatever isl raises, the asker must hear that nothing was decided
            answer["error"] = type(error).__name__
        sys.stdout.write(json.dumps(answer) + "\n")
        sys.stdout.flush()


if __name__ == "__main__":
    main()
