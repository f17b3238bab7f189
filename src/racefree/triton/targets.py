"""Which device the host compile aims at: the spelling of targets, and the facts a script may ask about the device."""

from __future__ import annotations

import os
import re
from dataclasses import dataclass
from typing import Any

from racefree.errors import InputError
from racefree.triton.versions import require_triton

DEFAULT = "cuda:80"
VARIABLE = "RACEFREE_TARGET"
ALTERNATIVES = ("cuda:90", "cuda:100", "hip:gfx942")
"""Targets tried when a kernel does not compile, to tell an error of the target from one of the kernel."""

_CUDA = re.compile(r"(?:cuda:)?(?:sm_?)?(\d{2,3})[a-z]?")
_HIP = re.compile(r"(?:hip:)?(gfx[0-9a-f]{3,4})")

# Multiprocessors and shared memory per block of a usual card of the architecture; scripts size persistent grids by them.
_CUDA_CARDS = {
    80: (108, 166912), 86: (84, 101376), 89: (142, 101376), 90: (132, 232448), 100: (148, 232448), 120: (188, 101376),
}  # fmt: skip
_HIP_CARDS = {"gfx90a": (104, 65536), "gfx942": (304, 65536), "gfx950": (256, 163840)}


@dataclass(frozen=True, slots=True)
class Target:
    """A compile target: `backend` is "cuda" or "hip", `arch` the compute capability (80) or the gfx name ("gfx942")."""

    backend: str
    arch: int | str
    warp_size: int

    def __str__(self) -> str:
        return f"{self.backend}:{self.arch}"

    @property
    def capability(self) -> tuple[int, int]:
        """(major, minor) as `torch.cuda.get_device_capability` gives it."""
        if isinstance(self.arch, int):
            return divmod(self.arch, 10)
        digits = self.arch.removeprefix("gfx")
        return int(digits[:-2]), int(digits[-2], 16)

    @property
    def multiprocessors(self) -> int:
        return _card(self)[0]

    @property
    def shared_bytes(self) -> int:
        return _card(self)[1]

    @property
    def device_name(self) -> str:
        return f"racefree host stand-in ({self})"


def _card(target: Target) -> tuple[int, int]:
    if isinstance(target.arch, int):
        return _CUDA_CARDS.get(target.arch, (108, 166912 if target.arch < 90 else 232448))
    return _HIP_CARDS.get(target.arch, (304, 65536))


def parse_target(text: str | None = None) -> Target:
    """Reads "cuda:80", "80", "sm_90", "hip:gfx942" or "gfx942"; None means `RACEFREE_TARGET`, else "cuda:80".

    Raises `InputError` when the text names no target, or one that the installed Triton's compiler does not accept, and
    `MissingPackage` without Triton.
    """
    origin = ""
    if text is None:
        text = os.environ.get(VARIABLE) or DEFAULT
        origin = f" (from {VARIABLE})" if os.environ.get(VARIABLE) else ""
    word = text.strip().lower()
    if found := _CUDA.fullmatch(word):
        target = Target("cuda", int(found[1]), 32)
    elif found := _HIP.fullmatch(word):
        target = Target("hip", found[1], 32 if len(found[1]) > len("gfx942") else 64)
    else:
        raise InputError(f"{text!r}{origin} is no target: write one like cuda:80, cuda:90 or hip:gfx942")
    _check_compiler_accepts(target, text + origin)
    return target


def gpu_target(target: Target) -> Any:
    """Triton's own spelling of a target."""
    from triton.backends.compiler import GPUTarget

    return GPUTarget(target.backend, target.arch, target.warp_size)


def _check_compiler_accepts(target: Target, spelled: str) -> None:
    require_triton()
    from triton.compiler import make_backend

    try:
        backend = make_backend(gpu_target(target))
        backend.parse_options({})
    except Exception as error:
        raise InputError(f"Triton's compiler does not accept the target {spelled}: {error}") from error
