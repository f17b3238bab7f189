"""What is known of tensors by the allocation they live in: on the pretended device or not, contents real or stale."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from racefree.triton.contents import StorageBook

_PRUNE_AT = 4096
UNINITIALISED = "it is uninitialised memory"
_FROM_BACKWARD = "autograd computed it after a launch that did not run"
_ZERO_FILL_BYTES = 64 << 20  # larger allocations come from the operating system as zero pages


class Placement:
    """Shared by the torch modes of all threads of a capture."""

    def __init__(self, book: StorageBook, launched: Callable[[], bool], note: Callable[[str], None]) -> None:
        self.book = book
        self.launched = launched
        self.note = note
        self.default_is_device = False
        self._device: dict[int, Any] = {}
        self._prune_at = _PRUNE_AT

    def on_device(self, tensor: Any) -> bool:
        """True when the program put this tensor on the pretended device."""
        storage = storage_or_none(tensor)
        return storage is not None and storage._cdata in self._device and not self._device[storage._cdata].expired()

    def put_on_device(self, tensors: Iterable[Any]) -> None:
        from torch.multiprocessing.reductions import StorageWeakRef

        for tensor in tensors:
            storage = storage_or_none(tensor)
            if storage is not None and not self.on_device(tensor):
                self._device[storage._cdata] = StorageWeakRef(storage)
        if len(self._device) > self._prune_at:
            self._device = {k: w for k, w in self._device.items() if not w.expired()}
            self._prune_at = max(_PRUNE_AT, 2 * len(self._device))

    def why_stale(self, tensors: Iterable[Any]) -> str | None:
        """The reason of the first tensor whose contents are stale."""
        for tensor in tensors:
            storage = storage_or_none(tensor)
            why = None if storage is None else self.book.why_stale(storage)
            if why is not None:
                return why
        return None

    def mark_stale(self, tensors: Iterable[Any], why: str) -> None:
        for tensor in tensors:
            storage = storage_or_none(tensor)
            if storage is not None:
                self.book.mark_stale(storage, why)

    def vouch(self, tensors: Iterable[Any]) -> None:
        """Torch has just made these of real values: nothing that an earlier launch wrote is in them."""
        for tensor in tensors:
            storage = storage_or_none(tensor)
            if storage is not None:
                self.book.vouch(storage)

    def mark_gradients(self, values: Any) -> None:
        """Autograd computes gradients where no mode sees it: after a skipped kernel none of them is relied on."""
        if self.launched():
            with torch_functions_off():
                self.mark_stale(tensors_in(values), _FROM_BACKWARD)

    def fresh(self, tensor: Any) -> None:
        """An uninitialised allocation: zeros stand in for what happens to be there, and nobody may rely on them."""
        storage = storage_or_none(tensor)
        if storage is None or tensor.device.type == "meta":
            return
        if storage.nbytes() <= _ZERO_FILL_BYTES:
            storage.fill_(0)
        self.book.mark_stale(storage, UNINITIALISED)


def torch_functions_off() -> Any:
    """A context in which torch calls go straight to torch, past every mode."""
    import torch

    return torch._C.DisableTorchFunction()


def storage_or_none(tensor: Any) -> Any:
    """The storage of a plain tensor, None for one that has none (sparse, fake)."""
    try:
        return tensor.untyped_storage()
    except (NotImplementedError, RuntimeError, AttributeError):
        return None


def tensors_in(value: Any) -> list[Any]:
    """The tensors in the arguments or results of a torch function, one list deep."""
    import torch

    found: list[Any] = []
    for item in value if isinstance(value, (tuple, list)) else (value,):
        if isinstance(item, torch.Tensor):
            found.append(item)
        elif isinstance(item, (tuple, list)):
            found.extend(part for part in item if isinstance(part, torch.Tensor))
    return found
