"""Checks of results that a skipped kernel did not produce: they pass, so that the program goes on to its next launch."""

from __future__ import annotations

import functools
import inspect
import sys
from collections.abc import Callable
from typing import Any

from racefree.triton.patches import Patches


def install(patches: Patches, launched: Callable[[], bool]) -> None:
    """`torch.testing.assert_close` and `numpy.testing`'s array checks succeed from the first taken launch on."""
    import numpy.testing._private.utils as numpy_checks
    import torch.testing._comparison as torch_checks

    # The functions behind the public ones are replaced: programs import the public ones by name before we come.
    _pass_after_launch(patches, torch_checks, "not_close_error_metas", [], launched)
    _pass_after_launch(patches, numpy_checks, "assert_array_compare", None, launched)


def _pass_after_launch(patches: Patches, module: Any, name: str, passed: Any, launched: Callable[[], bool]) -> None:
    real = getattr(module, name, None)
    if real is None:
        return
    real = inspect.unwrap(real)

    @functools.wraps(real)
    def check(*args: Any, **kwargs: Any) -> Any:
        return passed if launched() else real(*args, **kwargs)

    patches.set(module, name, check)
    for public in ("numpy.testing",):
        holder = sys.modules.get(public)
        if holder is not None and vars(holder).get(name) is real:
            patches.set(holder, name, check)
