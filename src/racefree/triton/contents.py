"""Which tensor contents a launch may rely on: copies of integer storages taken before it, and why others are unknown."""

from __future__ import annotations

import ctypes
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from racefree.forking import Rank, guarded
from racefree.graph.launch import Storage

DEFAULT_CAP_BYTES = 256 << 20
_META_BASE = 1 << 56
_META_ALIGN = 1 << 12
_PRUNE_AT = 4096
_REWRITES_FOLLOWED = 1 << 20  # elements of a storage up to which partial overwrites are followed


@dataclass(slots=True)
class _Copy:
    weak: Any
    data: npt.NDArray[np.uint8]


@dataclass(slots=True)
class _Stale:
    """`rewritten` marks the elements that torch overwrote since with real values; None while there are none."""

    weak: Any
    why: str
    start: int
    nbytes: int
    rewritten: Any = None


class StorageBook:
    """What is known about the storages a program uses: stable addresses, copies of contents, and stale contents.

    Storages are kept by weak reference to the allocation itself, so a new allocation at a reused address starts clean. Memory
    that torch borrows (from numpy) outlives its storages, and is remembered by address.
    All methods expect torch function modes to be off.
    """

    def __init__(self, cap_bytes: int = DEFAULT_CAP_BYTES) -> None:
        self._cap_bytes = cap_bytes
        self._stale: dict[int, _Stale] = {}
        self._borrowed: dict[int, tuple[int, str]] = {}
        self._lock = guarded(Rank.CONTENTS)  # threads of the program compute while another one launches
        self._distrust: str | None = None
        self._vouched: dict[int, Any] = {}
        self._copies: dict[int, _Copy] = {}
        self._meta: dict[int, tuple[Any, int]] = {}
        self._next_meta = _META_BASE
        self._prune_at = _PRUNE_AT

    @property
    def has_stale(self) -> bool:
        return bool(self._stale) or self._distrust is not None

    def mark_stale(self, storage: Any, why: str) -> None:
        """From now on the contents of a torch storage are not what the real program would see there."""
        with self._lock:
            self._stale[storage._cdata] = _Stale(_weak(storage), why, int(storage.data_ptr()), int(storage.nbytes()))
            if is_borrowed(storage):
                self._borrowed[storage.data_ptr()] = storage.nbytes(), why

    def distrust_all(self, why: str) -> None:
        """What is there now is not relied on: something may have written anywhere."""
        with self._lock:
            self._distrust = why
            self._vouched.clear()

    @property
    def distrusts(self) -> bool:
        return self._distrust is not None

    def vouch(self, storage: Any) -> None:
        """Torch filled the whole storage with real values after whatever may have written anywhere."""
        if self._distrust is not None and not is_borrowed(storage):
            with self._lock:
                self._vouched[storage._cdata] = _weak(storage)

    def mark_clean(self, storage: Any) -> None:
        """The whole storage was overwritten by torch with values that are real."""
        with self._lock:
            self._stale.pop(storage._cdata, None)
            found = self._borrowed.get(storage.data_ptr()) if self._borrowed else None
            if found is not None and found[0] <= storage.nbytes():
                del self._borrowed[storage.data_ptr()]
        self.vouch(storage)

    def put(self, storage: Any, data: bytes) -> None:
        """Writes the bytes of a storage of this process's memory. Raises ValueError for one that is not its own to write."""
        if storage.device.type != "cpu" or is_borrowed(storage) or storage.nbytes() != len(data):
            raise ValueError("only a storage in memory of torch's own takes bytes, and takes all of them")
        ctypes.memmove(storage.data_ptr(), data, len(data))

    def overwritten(self, tensor: Any, index: Any = ...) -> None:
        """Torch put real values into `tensor[index]`; a stale storage is clean once all of its elements were overwritten."""
        storage = tensor.untyped_storage()
        with self._lock:
            stale = self._stale.get(storage._cdata)
        whole = tensor.numel() * tensor.element_size() == storage.nbytes() and tensor.is_contiguous()
        if whole and _is_everything(index):
            self.mark_clean(storage)
            return
        if stale is None or storage.nbytes() // tensor.element_size() > _REWRITES_FOLLOWED:
            return
        if _rewritten(stale, tensor, index):
            self.mark_clean(storage)

    def why_stale(self, storage: Any) -> str | None:
        """The reason the contents are stale, None when they are real."""
        found = self._stale.get(storage._cdata)
        if found is not None and not found.weak.expired():
            return found.why
        if (self._borrowed or self._stale) and is_borrowed(storage):
            with self._lock:
                start, end = storage.data_ptr(), storage.data_ptr() + storage.nbytes()
                for address, (nbytes, why) in self._borrowed.items():
                    if start < address + nbytes and address < end:
                        return why
                for stale in self._stale.values():  # the memory may be another tensor's
                    if start < stale.start + stale.nbytes and stale.start < end and not stale.weak.expired():
                        return stale.why
        if self._distrust is None:
            return None
        vouched = self._vouched.get(storage._cdata)
        return None if vouched is not None and not vouched.expired() else self._distrust

    def address_of(self, storage: Any, *, meta: bool) -> int:
        """The start of a storage; a meta storage, which has no memory, gets a range of its own."""
        if not meta:
            return int(storage.data_ptr())
        found = self._meta.get(storage._cdata)
        if found is not None and not found[0].expired():
            return found[1]
        address = self._next_meta
        self._next_meta += (storage.nbytes() + 2 * _META_ALIGN - 1) // _META_ALIGN * _META_ALIGN
        self._meta[storage._cdata] = (_weak(storage), address)
        return address

    def snapshots(self, storages: Iterable[tuple[Any, bool, str | None]]) -> dict[int, Storage]:
        """One `Storage` per torch storage of a launch, by the storage's identity (`_cdata`).

        Each item is (storage, on the meta device, why its contents are not wanted). Copies are shared between launches
        while the bytes are the same; those of one launch stay under the cap together.
        """
        self._prune()
        left = self._cap_bytes
        taken: dict[int, Storage] = {}
        for storage, meta, unwanted in storages:
            if storage._cdata in taken:
                continue
            address, nbytes = self.address_of(storage, meta=meta), int(storage.nbytes())
            why = "a meta tensor has no contents" if meta else unwanted or self.why_stale(storage)
            if why is None and nbytes > left:
                why = (
                    f"its {nbytes} bytes do not fit under the snapshot cap ({left} of {self._cap_bytes} bytes are left)"
                )
            if why is not None:
                taken[storage._cdata] = Storage(address, nbytes, None, why)
                continue
            left -= nbytes
            taken[storage._cdata] = Storage(address, nbytes, self._copy(storage, address, nbytes), "")
        return taken

    def _copy(self, storage: Any, address: int, nbytes: int) -> npt.NDArray[np.uint8]:
        now = _bytes_of(storage, address, nbytes)
        kept = self._copies.get(storage._cdata)
        # The bytes are compared, not torch's version counter: numpy views and extensions write without counting.
        if kept is not None and _same_bytes(kept.data, now):
            return kept.data
        data = now.copy()
        data.setflags(write=False)
        self._copies[storage._cdata] = _Copy(_weak(storage), data)
        return data

    def _prune(self) -> None:
        """Drops what is known of freed storages, now and then, and the oldest copies beyond the cap."""
        with self._lock:
            if len(self._stale) + len(self._meta) + len(self._vouched) > self._prune_at:
                self._vouched = {k: v for k, v in self._vouched.items() if not v.expired()}
                self._stale = {k: v for k, v in self._stale.items() if not v.weak.expired()}
                self._meta = {k: v for k, v in self._meta.items() if not v[0].expired()}
                self._prune_at = max(_PRUNE_AT, 2 * (len(self._stale) + len(self._meta) + len(self._vouched)))
        self._copies = {k: c for k, c in self._copies.items() if not c.weak.expired()}
        while sum(c.data.nbytes for c in self._copies.values()) > self._cap_bytes:
            del self._copies[next(iter(self._copies))]


def _weak(storage: Any) -> Any:
    from torch.multiprocessing.reductions import StorageWeakRef

    return StorageWeakRef(storage)


def _same_bytes(one: npt.NDArray[np.uint8], other: npt.NDArray[np.uint8]) -> bool:
    if one.size != other.size:
        return False
    words = one.size // 8 * 8  # compared eight bytes at a time, which is several times faster
    heads = one[:words].view(np.uint64), other[:words].view(np.uint64)
    return np.array_equal(*heads) and np.array_equal(one[words:], other[words:])


def _is_everything(index: Any) -> bool:
    return index is ... or (isinstance(index, slice) and index == slice(None))


def _rewritten(stale: _Stale, tensor: Any, index: Any) -> bool:
    """Notes the elements `tensor[index]` as overwritten; true when every element of the storage is."""
    import torch

    count, rest = divmod(tensor.untyped_storage().nbytes(), tensor.element_size())
    if rest or not count:
        return False
    if stale.rewritten is None or stale.rewritten.numel() != count:  # seen at another element size: start again
        stale.rewritten = torch.zeros(count, dtype=torch.bool)
    stale.rewritten.as_strided(tensor.shape, tensor.stride(), tensor.storage_offset())[index] = True
    return bool(stale.rewritten.all())


def is_borrowed(storage: Any) -> bool:
    """True for memory that torch did not allocate itself, such as an array's of numpy; it may be read-only."""
    return bool(storage.nbytes()) and not storage.resizable()


def _bytes_of(storage: Any, address: int, nbytes: int) -> npt.NDArray[np.uint8]:
    if nbytes == 0:
        return np.zeros(0, dtype=np.uint8)
    if storage.device.type == "cpu":
        return np.ctypeslib.as_array((ctypes.c_uint8 * nbytes).from_address(address))
    import torch

    flat = torch.empty(0, dtype=torch.uint8, device=storage.device).set_(storage)
    host: npt.NDArray[np.uint8] = flat.cpu().numpy()
    return host
