"""The process behind `isl_process`: reads questions about integer sets as JSON lines and answers each.

Run by file name, so that it imports nothing of racefree and never the user's main module.
"""

from __future__ import annotations

import json
import sys
from typing import Any

import islpy

MEMORY_LIMIT_BYTES = 4 << 30


def answer(question: dict[str, Any]) -> dict[str, Any]:
    """`empty`: whether the intersection of the sets `parts` is. If it is not and `point` is wanted, one of its points.

    isl takes at most `operations` steps.
    """
    context = islpy.DEFAULT_CONTEXT
    context.reset_operations()
    context.set_max_operations(question["operations"])
    try:
        points: Any = None
        for part in question["parts"]:
            points = islpy.Set(part) if points is None else points.intersect(islpy.Set(part))
            if points.is_empty():
                return {"empty": True}
        return {"empty": False, "point": _coordinates(points) if question["point"] else None}
    finally:
        context.set_max_operations(0)


def _coordinates(points: Any) -> list[int]:
    point = points.sample_point()
    count = points.dim(islpy.dim_type.set)
    return [int(point.get_coordinate_val(islpy.dim_type.set, i).to_str()) for i in range(count)]


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
        question: dict[str, Any] = json.loads(line)
        reply: dict[str, Any] = {"id": question["id"]}
        try:
            reply["answer"] = answer(question)
        except Exception as error:  # whatever isl raises, the asker must hear that nothing was decided
            reply["error"] = type(error).__name__
        sys.stdout.write(json.dumps(reply) + "\n")
        sys.stdout.flush()


if __name__ == "__main__":
    main()
