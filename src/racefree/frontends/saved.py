"""Decides a launch that was saved to a file; neither the script nor Triton nor torch is needed."""

from __future__ import annotations

from racefree.analysis import Analyst
from racefree.errors import InputError
from racefree.frontends import Found, Request
from racefree.replaying import without_kernel


def check(request: Request, found: Found) -> None:
    """Raises InputError when the file is damaged, or options are given that a saved launch has already answered."""
    from racefree.triton.saved import load_launch

    if request.grid is not None or request.given or request.num_warps:
        raise InputError(f"{request.path} is a saved launch: it has its own grid and arguments")
    analyst = Analyst(request.settings, draws=request.draws)
    captured = load_launch(request.path)
    try:
        launch = analyst.decide(captured).launch
        found.add(launch if request.replays is None else without_kernel(launch, "a saved launch has no kernel to run"))
    except KeyboardInterrupt:
        found.add(analyst.interrupted(captured))
        raise
    found.tracebacks += analyst.tracebacks
