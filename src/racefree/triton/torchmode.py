"""The torch function mode: rewrites devices in calls, answers device queries, and follows stale contents through torch."""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping
from typing import Any

from racefree.triton.patches import first_outside_frame
from racefree.triton.placement import UNINITIALISED, Placement, storage_or_none, tensors_in

Handler = Callable[[Placement, Any, tuple[Any, ...], dict[str, Any]], Any]

# Functions by what their results have to do with the contents of their tensor arguments.
_VALUE_FREE = frozenset(
    (
        "zeros_like",
        "ones_like",
        "full_like",
        "rand_like",
        "randn_like",
        "randint_like",
        "new_zeros",
        "new_ones",
        "new_full",
    )
)
_FILLS = ("zero_", "fill_", "constant_", "copy_")
_DRAWS = ("normal_", "uniform_", "random_", "exponential_", "log_normal_", "cauchy_", "geometric_", "kaiming_uniform_")
_OVERWRITES = frozenset((*_FILLS, *_DRAWS))
_PARTLY_UNINITIALISED = frozenset(("resize_", "resize_as_", "new"))
_SIZES = ("size", "stride", "dim", "ndimension", "numel", "nelement", "element_size", "storage_offset", "is_contiguous")
_HANDLES = ("__get__", "__len__", "__hash__", "data_ptr", "untyped_storage", "is_floating_point")
_PLAIN_ANSWERS = frozenset((*_SIZES, *_HANDLES))
_HOST_READS = frozenset(("item", "tolist", "__bool__", "__int__", "__float__", "__index__", "numpy", "__array__"))
_UNINITIALISED = frozenset(("empty", "empty_like", "empty_strided", "empty_permuted", "new_empty", "new_empty_strided"))


@functools.cache
def device_mode_class() -> type[Any]:
    """The mode's class (torch is imported on first use)."""
    from torch.overrides import TorchFunctionMode

    handlers = _handlers()
    constructors = _constructors()

    class HostDeviceMode(TorchFunctionMode):  # type: ignore[misc]
        def __init__(self, placement: Placement) -> None:
            super().__init__()
            self.placement = placement

        def __torch_function__(
            self, func: Any, types: Any, args: tuple[Any, ...] = (), kwargs: dict[str, Any] | None = None
        ) -> Any:
            keywords = kwargs or {}
            handler = handlers.get(func)
            if handler is not None:
                return handler(self.placement, func, args, keywords)
            name = getattr(func, "__name__", "")
            if name in _PLAIN_ANSWERS:
                return func(*args, **keywords)
            on_device = False
            if keywords:
                on_device, keywords = _on_host(keywords)
            if func in constructors and self.placement.default_is_device and "device" not in keywords:
                on_device = True
            return _call(self.placement, func, name, args, keywords, on_device)

    return HostDeviceMode


def is_device(value: Any) -> bool:
    """True for a spelling of the CUDA device."""
    import torch

    if isinstance(value, torch.device):
        return bool(value.type == "cuda")
    if isinstance(value, str):
        return value.partition(":")[0] == "cuda"
    return isinstance(value, int) and not isinstance(value, bool)


def _on_host(keywords: Mapping[str, Any]) -> tuple[bool, dict[str, Any]]:
    """(the call asked for the device, its keywords for the CPU)"""
    changed, asked = dict(keywords), False
    if is_device(changed.get("device")):
        asked, changed["device"] = True, "cpu"
    if changed.get("pin_memory"):
        changed["pin_memory"] = False
    return asked, changed


def _call(
    placement: Placement, func: Any, name: str, args: tuple[Any, ...], keywords: dict[str, Any], on_device: bool
) -> Any:
    inputs = tensors_in(args) + (tensors_in(tuple(keywords.values())) if keywords else [])
    why = placement.why_stale(inputs) if placement.book.has_stale and inputs else None
    versions = [_version(t) for t in inputs] if why is not None else []
    result = func(*args, **keywords)
    outputs = tensors_in(result)
    if not outputs and why is None:
        return result
    if on_device or any(placement.on_device(t) for t in inputs):
        placement.put_on_device(outputs)
    if name in _UNINITIALISED:
        for tensor in outputs:
            placement.fresh(tensor)
    elif name in _PARTLY_UNINITIALISED:
        placement.mark_stale(outputs, UNINITIALISED)
    elif why is not None and name not in _VALUE_FREE and not _overwrites(placement, name, args, keywords, inputs):
        changed = [t for t, before in zip(inputs, versions, strict=True) if _changed(t, before, name)]
        placement.mark_stale(changed, why)
        placement.mark_stale(_made(outputs, inputs), why)
        if name in _HOST_READS:
            placement.note(f"a value was read at {_here()} that the program computes otherwise: {why}")
    elif placement.book.distrusts and _makes_new(func, name, inputs):
        placement.vouch(_made(outputs, inputs))
    return result


def _overwrites(
    placement: Placement, name: str, args: tuple[Any, ...], keywords: dict[str, Any], inputs: list[Any]
) -> bool:
    """True for a call that puts only real values into a tensor, which is noted; what the tensor held before plays no part."""
    if name in _OVERWRITES and placement.why_stale(inputs[1:]) is None:
        placement.book.overwritten(inputs[0])
        return True
    if name == "__setitem__" and placement.why_stale(tensors_in(args[1:])) is None:
        placement.book.overwritten(args[0], args[1])
        return True
    out = keywords.get("out")
    if out is not None and placement.why_stale(t for t in inputs if t is not out) is None:
        for tensor in tensors_in(out):
            placement.book.overwritten(tensor)
        return True
    return False


def _here() -> str:
    site = first_outside_frame()
    return f"{site.file}:{site.line}"


def _made(outputs: list[Any], inputs: list[Any]) -> list[Any]:
    """The results that are no views of the arguments: nothing new flowed into those."""
    known = _storages(inputs)
    return [t for t in outputs if not _storages([t]) <= known]


def _makes_new(func: Any, name: str, inputs: list[Any]) -> bool:
    """True when results that are no views of the arguments have just been made, and of nothing but these."""
    if not inputs:
        return func in _constructors() and name != "from_file"
    return all(storage_or_none(tensor) is not None for tensor in inputs)


def _storages(tensors: list[Any]) -> set[int]:
    found = (storage_or_none(t) for t in tensors)
    return {s._cdata for s in found if s is not None}


def _changed(tensor: Any, before: int | None, name: str) -> bool:
    """True when the call may have written the tensor; one made in inference mode has no count, so the name must tell."""
    if before is not None:
        return _version(tensor) != before
    return name.endswith("_") and (not name.endswith("__") or name.startswith(("__i", "__set")))


def _version(tensor: Any) -> int | None:
    try:
        return int(tensor._version)
    except RuntimeError:  # inference tensors keep no count
        return None


# ---- functions with a meaning of their own ---------------------------------------------------------------------------


def _handlers() -> dict[Any, Handler]:
    import torch

    tensor = torch.Tensor
    table: dict[Any, Handler] = {
        tensor.device.__get__: _device,
        tensor.is_cuda.__get__: lambda p, f, a, k: a[0].device.type in ("cpu", "cuda"),
        tensor.is_cpu.__get__: lambda p, f, a, k: False,
        tensor.get_device: lambda p, f, a, k: 0,
        tensor.grad.__get__: _gradient,
        tensor.cuda: lambda p, f, a, k: _to_device(p, a[0]),
        tensor.cpu: lambda p, f, a, k: _to_host(p, a[0]),
        tensor.to: _to,
        tensor.type: _type,
        tensor.pin_memory: lambda p, f, a, k: a[0],
        tensor.is_pinned: lambda p, f, a, k: False,
        tensor.record_stream: lambda p, f, a, k: None,
        torch.allclose: _compares,
        tensor.allclose: _compares,
        torch.equal: _equals,
        tensor.equal: _equals,
        torch.autograd.grad: _gradients,
    }
    for function in (torch.as_tensor, torch.asarray):
        table[function] = _converted
    for function in (torch.mm, torch.bmm, torch.addmm, torch.baddbmm):
        table[function] = _product
    return table


@functools.cache
def _constructors() -> frozenset[Any]:
    from torch.utils._device import _device_constructors

    return frozenset(_device_constructors())


def _device(placement: Placement, func: Any, args: tuple[Any, ...], keywords: dict[str, Any]) -> Any:
    import torch

    device = func(*args)
    return torch.device("cuda", 0) if device.type == "cpu" else device


def _to_device(placement: Placement, tensor: Any) -> Any:
    """The device copy of a host tensor; a tensor that is there already is itself, as aliasing decides about races."""
    if tensor.device.type == "meta" or placement.on_device(tensor):
        return tensor
    copy = _tracked(placement, tensor, tensor.clone())
    placement.put_on_device([copy])
    return copy


def _to_host(placement: Placement, tensor: Any) -> Any:
    if tensor.device.type == "meta" or not placement.on_device(tensor):
        return tensor
    return _tracked(placement, tensor, tensor.clone())


def _tracked(placement: Placement, source: Any, copy: Any) -> Any:
    why = placement.why_stale([source])
    if why is not None:
        placement.mark_stale([copy], why)
    else:
        placement.vouch([copy])
    return copy


def _to(placement: Placement, func: Any, args: tuple[Any, ...], keywords: dict[str, Any]) -> Any:
    tensor, rest = args[0], list(args[1:])
    spelled = keywords.get("device", rest[0] if rest else None)
    if not _names_device(spelled):
        return _call(placement, func, "to", args, keywords, on_device=False)
    moved = _to_device(placement, tensor) if is_device(spelled) else tensor
    if str(spelled).startswith("cpu"):
        moved = _to_host(placement, tensor)
    if "device" in keywords:
        keywords = {k: v for k, v in keywords.items() if k != "device"}
    else:
        rest = rest[1:]
    if str(spelled).startswith("meta"):
        return func(tensor, spelled, *rest, **keywords)
    rest = [r for r in rest if not isinstance(r, bool)]  # non_blocking and copy, by position
    if not rest and not keywords.keys() - {"non_blocking"}:
        return moved
    return _call(placement, func, "to", (moved, *rest), keywords, on_device=is_device(spelled))


def _names_device(value: Any) -> bool:
    import torch

    return isinstance(value, (str, torch.device)) or (isinstance(value, int) and not isinstance(value, bool))


def _type(placement: Placement, func: Any, args: tuple[Any, ...], keywords: dict[str, Any]) -> Any:
    if len(args) > 1 and isinstance(args[1], str):
        args = (args[0], args[1].replace("torch.cuda.", "torch."), *args[2:])
    return _call(placement, func, "type", args, keywords, on_device=False)


def _converted(placement: Placement, func: Any, args: tuple[Any, ...], keywords: dict[str, Any]) -> Any:
    asked, keywords = _on_host(keywords)
    result = _call(placement, func, "as_tensor", args, keywords, on_device=False)
    return _to_device(placement, result) if asked or placement.default_is_device else result


def _product(placement: Placement, func: Any, args: tuple[Any, ...], keywords: dict[str, Any]) -> Any:
    """A matrix product that widens its result (`out_dtype`), which only the device can: here its operands are widened."""
    import torch

    kinds = [value for value in (*args, keywords.get("out_dtype")) if isinstance(value, torch.dtype)]
    if not kinds:
        return _call(placement, func, func.__name__, args, keywords, on_device=False)

    def wide(value: Any) -> Any:
        if not isinstance(value, torch.Tensor):
            return value
        return _call(placement, torch.Tensor.to, "to", (value, kinds[0]), {}, on_device=False)

    operands = tuple(wide(value) for value in args if not isinstance(value, torch.dtype))
    rest = {name: value if name == "out" else wide(value) for name, value in keywords.items() if name != "out_dtype"}
    return _call(placement, func, func.__name__, operands, rest, on_device=False)


def _gradient(placement: Placement, func: Any, args: tuple[Any, ...], keywords: dict[str, Any]) -> Any:
    gradient = func(*args)
    placement.mark_gradients(gradient)
    return gradient


def _gradients(placement: Placement, func: Any, args: tuple[Any, ...], keywords: dict[str, Any]) -> Any:
    found = func(*args, **keywords)
    placement.mark_gradients(found)
    return found


def _compares(placement: Placement, func: Any, args: tuple[Any, ...], keywords: dict[str, Any]) -> bool:
    """A tolerance check of results says nothing once a kernel was skipped: it passes, so that the program goes on."""
    return True if placement.launched() else bool(func(*args, **keywords))


def _equals(placement: Placement, func: Any, args: tuple[Any, ...], keywords: dict[str, Any]) -> bool:
    return True if placement.why_stale(tensors_in(args)) is not None else bool(func(*args, **keywords))
