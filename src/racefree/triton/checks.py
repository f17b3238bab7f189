"""Checks of results that a skipped kernel did not produce: they pass, so that the program goes on to its next launch."""

from __future__ import annotations

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
    if not hasattr(module, name):
        return

    def replace(real: Any) -> Callable[..., Any]:
        def check(*args: Any, **kwargs: Any) -> Any:
            return passed if launched() else real(*args, **kwargs)

        return check

    patches.wrap(module, name, replace)
