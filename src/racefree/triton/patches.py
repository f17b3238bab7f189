"""Changes to other modules that are undone in reverse order, and the frame of the user's own code."""

from __future__ import annotations

import functools
import os
import sys
from collections.abc import Callable, Mapping
from contextlib import ExitStack
from typing import Any

from racefree.access import Site

_ABSENT = object()
_WRAPS = "_racefree_wraps"


class Patches(ExitStack):
    """An exit stack that also replaces attributes."""

    def set(self, owner: Any, name: str, value: Any) -> None:
        """Replaces `owner.name` until exit; an attribute that was not there (or was inherited) is removed again."""
        old = vars(owner).get(name, _ABSENT)
        setattr(owner, name, value)
        self.callback(_restore, owner, name, old)

    def set_all(self, owner: Any, values: Mapping[str, Any]) -> None:
        """Replaces several attributes of one owner."""
        for name, value in values.items():
            self.set(owner, name, value)

    def wrap(self, owner: Any, name: str, replace: Callable[[Any], Any]) -> None:
        """Replaces the function `owner.name` by `replace(real)`, looking through a wrapper that an outer capture put there."""
        real = getattr(owner, name)
        real = getattr(real, _WRAPS, real)
        wrapper = functools.wraps(real)(replace(real))
        setattr(wrapper, _WRAPS, real)
        self.set(owner, name, wrapper)


def _restore(owner: Any, name: str, old: Any) -> None:
    if old is _ABSENT:
        delattr(owner, name)
    else:
        setattr(owner, name, old)


def first_outside_frame() -> Site:
    """The innermost frame that is neither Triton's, torch's own machinery, nor ours: the line that made the launch."""
    frame: Any = sys._getframe(1)
    inside = inside_folders()
    while frame is not None:
        name = frame.f_code.co_filename
        if not name.startswith(inside):
            return Site(name, frame.f_lineno, 0, frame.f_code.co_name)
        frame = frame.f_back
    return Site("<unknown>", 0)


@functools.cache
def inside_folders() -> tuple[str, ...]:
    """How the names of files begin that are no code of the user: ours, Triton's and torch's."""
    import contextlib

    ours = os.path.dirname(os.path.dirname(os.path.abspath(__file__))) + os.sep
    folders = [ours, os.path.abspath(contextlib.__file__), "<string>", "<frozen"]
    for name in ("triton", "torch"):
        module = sys.modules.get(name)
        if module is not None and module.__file__:
            folders.append(os.path.dirname(module.__file__) + os.sep)
    return tuple(folders)
