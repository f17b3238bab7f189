"""Turns the bound arguments of a launch into plain facts: addresses, shapes, storages, contents, scalars, descriptors."""

from __future__ import annotations

import operator
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from racefree.errors import Refused
from racefree.graph.launch import Argument, Descriptor, Scalar, Storage, Tensor
from racefree.triton.contents import StorageBook
from racefree.triton.placement import storage_or_none

CONSTANT = "constexpr"


@dataclass(frozen=True, slots=True)
class BoundArguments:
    """`arguments` by parameter name (dotted for tuple elements), `constants` the compile-time ones.

    `torch_storages` are the allocations behind the tensors by address; `untracked` tells that some argument points at
    memory that is none of them.
    """

    arguments: dict[str, Argument]
    constants: dict[str, Any]
    torch_storages: dict[int, Any]
    untracked: bool


def read_arguments(signature: Mapping[str, Any], values: Sequence[Any], book: StorageBook) -> BoundArguments:
    """Reads a launch's arguments, which are in parameter order; `signature` is Triton's, by parameter name.

    Raises `Refused` for an argument whose memory cannot be told (fake or duck-typed without a size).
    """
    flat: dict[str, Any] = {}
    constants: dict[str, Any] = {}
    for (name, kind), value in zip(signature.items(), values, strict=True):
        for path, part_kind, part in _leaves(name, kind, value):
            if isinstance(part_kind, str) and part_kind == CONSTANT:
                constants[path] = plain_constant(part)
            else:
                flat[path] = part
    real = [(path, *found) for path, value in flat.items() if (found := _torch_tensor(value)) is not None]
    wanted: dict[int, bool] = {}
    for _, tensor, dtype in real:
        key = _storage_of(tensor)._cdata
        wanted[key] = wanted.get(key, False) or _holds_integers(dtype)
    storages = book.snapshots(_requests(real, wanted))
    by_address = {s.address: s for s in storages.values()}
    arguments = {path: _argument(path, value, book, storages, by_address) for path, value in flat.items()}
    behind = {storages[_storage_of(t)._cdata].address: _storage_of(t) for _, t, _ in real}
    tensors = (a.base if isinstance(a, Descriptor) else a for a in arguments.values())
    untracked = any(isinstance(t, Tensor) and t.storage.address not in behind for t in tensors)
    return BoundArguments(arguments, constants, behind, untracked)


def plain_constant(value: Any) -> Any:
    """A compile-time value as JSON-ready data: itself where it is that already, else its text."""
    value = getattr(value, "value", value) if type(value).__name__ == "constexpr" else value
    if value is None or isinstance(value, (bool, int, float, str)):
        return value
    if isinstance(value, (tuple, list)):
        return [plain_constant(v) for v in value]
    return getattr(value, "__name__", None) or str(value)


def _leaves(path: str, kind: Any, value: Any) -> Iterator[tuple[str, Any, Any]]:
    if not isinstance(kind, tuple):
        yield path, kind, value
        return
    for index, (part_kind, part) in enumerate(zip(kind, value, strict=True)):
        yield from _leaves(f"{path}.{index}", part_kind, part)


def _requests(real: list[tuple[str, Any, Any]], wanted: Mapping[int, bool]) -> Iterator[tuple[Any, bool, str | None]]:
    for _, tensor, dtype in real:
        storage = _storage_of(tensor)
        unwanted = None if wanted[storage._cdata] else f"float dtype {dtype_name(dtype)}"
        yield storage, tensor.device.type == "meta", unwanted


def storages_in(values: Sequence[Any]) -> Iterator[Any]:
    """The torch storages behind any values of a launch, as far as they can be told."""
    for value in values:
        if isinstance(value, (tuple, list)):
            yield from storages_in(value)
            continue
        found = _torch_tensor(value)
        if found is not None and (storage := storage_or_none(found[0])) is not None:
            yield storage


def _torch_tensor(value: Any) -> tuple[Any, Any] | None:
    """(the torch tensor behind an argument, the dtype the kernel sees), None for anything else."""
    import torch

    if isinstance(value, torch.Tensor):
        return value, value.dtype
    base = getattr(value, "base", None)
    if isinstance(base, torch.Tensor):  # a host descriptor, or a tensor reinterpreted at another dtype
        return base, base.dtype if _is_descriptor(value) else value.dtype
    if hasattr(value, "data_ptr") and hasattr(value, "dtype"):
        wrapped = _wrapped_tensor(value)
        return None if wrapped is None else (wrapped, value.dtype)
    return None


def _wrapped_tensor(value: Any) -> Any:
    """The torch tensor that an object stands in for: the attribute whose storage holds the object's pointer."""
    import torch

    address = value.data_ptr()
    for held in vars(value).values() if hasattr(value, "__dict__") else ():
        storage = storage_or_none(held) if isinstance(held, torch.Tensor) else None
        if storage is not None and storage.data_ptr() <= address < storage.data_ptr() + storage.nbytes():
            return held
    return None


def _storage_of(tensor: Any) -> Any:
    if type(tensor).__name__ in ("FakeTensor", "FunctionalTensor"):
        raise Refused("fake-tensor", "a fake tensor has no memory; launch with real or meta tensors")
    try:
        return tensor.untyped_storage()
    except (NotImplementedError, RuntimeError) as error:
        raise Refused("no-storage", f"a {type(tensor).__name__} argument has no storage: {error}") from error


def _is_stand_in(value: Any) -> bool:
    """True for an object with a pointer, shape and strides of its own into a tensor it holds."""
    import torch

    return not isinstance(value, torch.Tensor) and not isinstance(getattr(value, "base", None), torch.Tensor)


def _is_descriptor(value: Any) -> bool:
    return hasattr(value, "base") and hasattr(value, "block_shape")


def _argument(
    path: str, value: Any, book: StorageBook, storages: Mapping[int, Storage], by_address: Mapping[int, Storage]
) -> Argument:
    if _is_descriptor(value):
        base = _argument(path, value.base, book, storages, by_address)
        if not isinstance(base, Tensor):
            raise Refused("unknown-argument", f"the base of descriptor {path} is no tensor")
        shape, strides, block = (
            tuple(int(x) for x in part) for part in (value.shape, value.strides, value.block_shape)
        )
        return Descriptor(base, shape, strides, block, str(getattr(value, "padding", "zero")))
    found = _torch_tensor(value)
    if found is not None and _is_stand_in(value):
        return _duck(path, value, {0: storages[_storage_of(found[0])._cdata]})
    if found is not None:
        return _tensor(*found, book, storages)
    if hasattr(value, "data_ptr"):
        return _duck(path, value, by_address)
    return _scalar(path, value)


def _tensor(tensor: Any, dtype: Any, book: StorageBook, storages: Mapping[int, Storage]) -> Tensor:
    storage = storages[_storage_of(tensor)._cdata]
    address = int(tensor.data_ptr())
    if tensor.device.type == "meta":
        address = storage.address + tensor.storage_offset() * tensor.element_size()
    shape, strides = tuple(int(n) for n in tensor.shape), tuple(int(n) for n in tensor.stride())
    return Tensor(address, element_bytes(dtype), dtype_name(dtype), shape, strides, storage)


def _duck(path: str, value: Any, by_address: Mapping[int, Storage]) -> Tensor:
    address, dtype = int(value.data_ptr()), value.dtype
    shape, strides = _sizes(value, "shape"), _sizes(value, "stride") or _sizes(value, "strides")
    size = element_bytes(dtype)
    if shape is None:
        raise Refused(
            "unknown-extent", f"argument {path} ({type(value).__name__}) has no shape, so its memory cannot be told"
        )
    if strides is None or len(strides) != len(shape):
        strides = _row_major(shape)
    for storage in by_address.values():
        if storage.address <= address < storage.address + storage.nbytes:
            return Tensor(address, size, dtype_name(dtype), shape, strides, storage)
    low = sum(min(0, (n - 1) * s) for n, s in zip(shape, strides, strict=True)) * size
    high = (sum(max(0, (n - 1) * s) for n, s in zip(shape, strides, strict=True)) + 1) * size
    nbytes = 0 if 0 in shape else high - low
    why = f"a {type(value).__name__} argument gives no access to its contents"
    return Tensor(address, size, dtype_name(dtype), shape, strides, Storage(address + low, nbytes, None, why))


def _sizes(value: Any, name: str) -> tuple[int, ...] | None:
    found = getattr(value, name, None)
    try:
        found = found() if callable(found) else found
        return None if found is None else tuple(int(x) for x in found)
    except TypeError:
        return None


def _row_major(shape: tuple[int, ...]) -> tuple[int, ...]:
    strides = [1]
    for extent in reversed(shape[1:]):
        strides.insert(0, strides[0] * max(extent, 1))
    return tuple(strides[: len(shape)])


def _scalar(path: str, value: Any) -> Scalar:
    if value is None or isinstance(value, (bool, int, float)):
        return Scalar(value)
    try:
        return Scalar(operator.index(value))
    except TypeError:
        pass
    try:
        return Scalar(float(value))
    except (TypeError, ValueError):
        raise Refused("unknown-argument", f"argument {path} of type {type(value).__name__} is not understood") from None


def dtype_name(dtype: Any) -> str:
    """Torch's name of an element type ("float32"), whoever spelled it."""
    text = str(dtype).removeprefix("torch.").removeprefix("tl.")
    return _TRITON_NAMES.get(text, text)


def element_bytes(dtype: Any) -> int:
    """Size of one element in memory; a bool takes one byte."""
    if hasattr(dtype, "itemsize"):
        return int(dtype.itemsize)
    if hasattr(dtype, "primitive_bitwidth"):
        return max(1, int(dtype.primitive_bitwidth) // 8)
    name = dtype_name(dtype)
    if name in DTYPE_BYTES:
        return DTYPE_BYTES[name]
    raise Refused("unknown-argument", f"element type {dtype!r} is not known")


def _holds_integers(dtype: Any) -> bool:
    name = dtype_name(dtype)
    return name.startswith(("int", "uint", "bool"))


_TRITON_NAMES = {
    "fp16": "float16", "bf16": "bfloat16", "fp32": "float32", "fp64": "float64",
    "fp8e4nv": "float8_e4m3fn", "fp8e5": "float8_e5m2", "fp8e4b8": "float8_e4m3fnuz", "fp8e5b16": "float8_e5m2fnuz",
    "int1": "bool", "i1": "bool", "u1": "bool", "i8": "int8", "i16": "int16", "i32": "int32", "i64": "int64",
    "u8": "uint8", "u16": "uint16", "u32": "uint32", "u64": "uint64",
}  # fmt: skip

DTYPE_BYTES = {
    "bool": 1, "int8": 1, "uint8": 1, "int16": 2, "uint16": 2, "int32": 4, "uint32": 4, "int64": 8, "uint64": 8,
    "float16": 2, "bfloat16": 2, "float32": 4, "float64": 8, "float8_e4m3fn": 1, "float8_e5m2": 1, "float8_e4m3fnuz": 1,
    "float8_e5m2fnuz": 1, "float8_e4b15": 1, "fp8e4b15": 1,
}  # fmt: skip
"""Bytes per element, by torch's name."""
