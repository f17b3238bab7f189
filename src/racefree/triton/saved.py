"""Saved launches: everything the analysis of one launch needs, as a JSON file that needs neither Triton nor torch to read.

Layout, schema 1 (a reader refuses newer schemas; unknown keys are ignored):

    kind            "racefree-launch"
    schema          1
    kernel          name of the kernel
    site            where the kernel is defined: {file, line, column, function, callers: [site, ...]}
    launch_site     the line that launched it, the same way
    notes           [text, ...]
    modules         [{text, census, triton_version}, ...]: TTIR in MLIR's generic form; census is null or a list of
                    [operation, operands, results, regions, how many]
    storages        [{address, nbytes, contents, why_unknown}, ...]: contents is null or base64 of zlib of the bytes
    configs         [{config, module, failure, facts}, ...]: `config` the autotuner's keyword arguments, `module` an index or
                    null, `failure` null or {kind, reason, source}, `facts` null or
                    {kernel, grid: [x, y, z], arguments, num_warps, warp_size, num_ctas, target, triton_version, constants}
    arguments       {parameter: argument}, where an argument is one of
                    {scalar: int | bool | null} or {float: text}
                    {tensor: {address, element_bytes, dtype, shape, strides, storage: index}}
                    {descriptor: {base: tensor, shape, strides, block_shape, padding}}

Contents of float tensors are never saved, as they are never taken.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import json
import zlib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from racefree.access import Site
from racefree.errors import InputError, Refusal
from racefree.graph.launch import Argument, Descriptor, LaunchFacts, Scalar, Storage, Tensor
from racefree.triton.launches import CapturedConfig, CapturedLaunch
from racefree.ttir.generic import GenericModule

KIND = "racefree-launch"
SCHEMA = 1


def save_launch(launch: CapturedLaunch, folder: Path) -> Path:
    """Writes one launch into a folder (made if missing), under a name of the kernel and the launch's own digest."""
    text = to_json(launch)
    digest = hashlib.sha256(text.encode()).hexdigest()[:12]
    name = "".join(c if c.isalnum() or c in "_-" else "_" for c in launch.kernel)[:80]
    try:
        folder.mkdir(parents=True, exist_ok=True)
        path = folder / f"{name}-{digest}.json"
        path.write_text(text, encoding="utf-8")
    except OSError as error:
        raise InputError(f"cannot save launches in {folder}: {error.strerror or error}") from error
    return path


def load_launch(path: Path) -> CapturedLaunch:
    """Reads a saved launch. Raises `InputError` for a file that is damaged, of another kind, or of a newer schema."""
    try:
        text = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise InputError(f"cannot read {path}: {error}") from error
    return from_json(text, name=str(path))


# ---- writing ---------------------------------------------------------------------------------------------------------


def to_json(launch: CapturedLaunch) -> str:
    """The text of a saved launch. Modules and storages that configs share are written once."""
    modules: list[GenericModule] = []
    storages: list[Storage] = []
    configs = [_config_out(config, modules, storages) for config in launch.configs]
    document = {
        "kind": KIND,
        "schema": SCHEMA,
        "kernel": launch.kernel,
        "site": _site_out(launch.site),
        "launch_site": _site_out(launch.launch_site),
        "notes": list(launch.notes),
        "configs": configs,
        "storages": [_storage_out(s) for s in storages],
        "modules": [_module_out(m) for m in modules],
    }
    return json.dumps(document, indent=1) + "\n"


def _config_out(config: CapturedConfig, modules: list[GenericModule], storages: list[Storage]) -> dict[str, Any]:
    return {
        "config": config.config,
        "module": None if config.module is None else _index(modules, config.module),
        "failure": None if config.failure is None else _failure_out(config.failure),
        "facts": None if config.facts is None else _facts_out(config.facts, storages),
    }


def _index(known: list[Any], item: Any) -> int:
    for index, other in enumerate(known):
        if other is item:
            return index
    known.append(item)
    return len(known) - 1


def _facts_out(facts: LaunchFacts, storages: list[Storage]) -> dict[str, Any]:
    return {
        "kernel": facts.kernel,
        "grid": list(facts.grid),
        "arguments": {name: _argument_out(a, storages) for name, a in facts.arguments.items()},
        "num_warps": facts.num_warps,
        "warp_size": facts.warp_size,
        "num_ctas": facts.num_ctas,
        "target": facts.target,
        "triton_version": facts.triton_version,
        "constants": facts.constants,
    }


def _argument_out(argument: Argument, storages: list[Storage]) -> dict[str, Any]:
    match argument:
        case Scalar(value=float() as value):
            return {"float": repr(value)}
        case Scalar(value=value):
            return {"scalar": value}
        case Tensor():
            return {"tensor": _tensor_out(argument, storages)}
        case Descriptor():
            described = {
                "base": _tensor_out(argument.base, storages),
                "shape": list(argument.shape),
                "strides": list(argument.strides),
                "block_shape": list(argument.block_shape),
                "padding": argument.padding,
            }
            return {"descriptor": described}


def _tensor_out(tensor: Tensor, storages: list[Storage]) -> dict[str, Any]:
    return {
        "address": tensor.address,
        "element_bytes": tensor.element_bytes,
        "dtype": tensor.dtype,
        "shape": list(tensor.shape),
        "strides": list(tensor.strides),
        "storage": _index(storages, tensor.storage),
    }


def _storage_out(storage: Storage) -> dict[str, Any]:
    packed = None
    if storage.contents is not None:
        packed = base64.b64encode(zlib.compress(storage.contents.tobytes(), 6)).decode("ascii")
    return {
        "address": storage.address,
        "nbytes": storage.nbytes,
        "contents": packed,
        "why_unknown": storage.why_unknown,
    }


def _module_out(module: GenericModule) -> dict[str, Any]:
    census = None if module.census is None else [[*key, count] for key, count in sorted(module.census.items())]
    return {"text": module.text, "census": census, "triton_version": module.triton_version}


def _failure_out(failure: Refusal) -> dict[str, Any]:
    source = None if failure.source is None else _site_out(failure.source)
    return {"kind": failure.kind, "reason": failure.reason, "source": source}


def _site_out(site: Site) -> dict[str, Any]:
    return {
        "file": site.file,
        "line": site.line,
        "column": site.column,
        "function": site.function,
        "callers": [_site_out(c) for c in site.callers],
    }


# ---- reading ---------------------------------------------------------------------------------------------------------


def from_json(text: str, *, name: str = "the saved launch") -> CapturedLaunch:
    """Reads the text of a saved launch; `name` is how error messages call it."""
    try:
        document = json.loads(text)
    except ValueError as error:
        raise InputError(f"{name} is damaged: {error}") from error
    if not isinstance(document, dict) or document.get("kind") != KIND:
        raise InputError(f"{name} is no saved launch")
    schema = document.get("schema")
    if not isinstance(schema, int) or schema < 1:
        raise InputError(f"{name} is damaged: its schema number is {schema!r}")
    if schema > SCHEMA:
        raise InputError(f"{name} has schema {schema}, and this racefree reads up to {SCHEMA}: use a newer racefree")
    try:
        return _launch_in(document)
    except KeyError as error:
        raise InputError(f"{name} is damaged: {error.args[0]!r} is missing") from error
    except (TypeError, ValueError, IndexError, AttributeError, binascii.Error, zlib.error, RecursionError) as error:
        raise InputError(f"{name} is damaged: {error}") from error


def _launch_in(document: Mapping[str, Any]) -> CapturedLaunch:
    modules = [_module_in(m) for m in document["modules"]]
    storages = [_storage_in(s) for s in document["storages"]]
    return CapturedLaunch(
        _text(document["kernel"]),
        _site_in(document["site"]),
        _site_in(document["launch_site"]),
        tuple(_config_in(c, modules, storages) for c in document["configs"]),
        tuple(_text(n) for n in document["notes"]),
    )


def _config_in(data: Mapping[str, Any], modules: list[GenericModule], storages: list[Storage]) -> CapturedConfig:
    config, module, failure, facts = dict(data["config"]), data["module"], data["failure"], data["facts"]
    if (module is None or facts is None) and failure is None:
        raise ValueError("a config has neither a module with facts nor a failure")
    return CapturedConfig(
        None if facts is None else _facts_in(facts, config, storages),
        None if module is None else modules[_whole(module, least=0)],
        config,
        None if failure is None else _failure_in(failure),
    )


def _facts_in(data: Mapping[str, Any], config: dict[str, Any], storages: list[Storage]) -> LaunchFacts:
    x, y, z = (_whole(n, least=0) for n in data["grid"])
    return LaunchFacts(
        kernel=_text(data["kernel"]),
        grid=(x, y, z),
        arguments={_text(n): _argument_in(n, a, storages) for n, a in data["arguments"].items()},
        num_warps=_whole(data["num_warps"], least=1),
        warp_size=_whole(data["warp_size"], least=1),
        num_ctas=_whole(data["num_ctas"], least=1),
        target=_text(data["target"]),
        triton_version=_text(data["triton_version"]),
        config=config,
        constants=dict(data["constants"]),
    )


def _argument_in(name: str, data: Mapping[str, Any], storages: list[Storage]) -> Argument:
    match data:
        case {"scalar": None | bool() | int() as value}:
            return Scalar(value)
        case {"float": str() as text}:
            return Scalar(float(text))
        case {"tensor": dict() as tensor}:
            return _tensor_in(tensor, storages)
        case {"descriptor": dict() as d}:
            shape, strides, block = (_wholes(d[key]) for key in ("shape", "strides", "block_shape"))
            if not len(shape) == len(strides) == len(block):
                raise ValueError(f"descriptor {name} has parts of different ranks")
            return Descriptor(_tensor_in(d["base"], storages), shape, strides, block, _text(d["padding"]))
        case _:
            raise ValueError(f"argument {name} is of no known kind")


def _tensor_in(data: Mapping[str, Any], storages: list[Storage]) -> Tensor:
    shape, strides = _wholes(data["shape"], least=0), _wholes(data["strides"])
    if len(shape) != len(strides):
        raise ValueError("a tensor has as many strides as dimensions, one here does not")
    return Tensor(
        _whole(data["address"], least=0),
        _whole(data["element_bytes"], least=1),
        _text(data["dtype"]),
        shape,
        strides,
        storages[_whole(data["storage"], least=0)],
    )


def _storage_in(data: Mapping[str, Any]) -> Storage:
    address, nbytes = _whole(data["address"], least=0), _whole(data["nbytes"], least=0)
    packed, contents = data["contents"], None
    if packed is not None:
        unpack = zlib.decompressobj()
        raw = unpack.decompress(base64.b64decode(_text(packed), validate=True), nbytes + 1)
        if len(raw) != nbytes or (nbytes and not unpack.eof and unpack.decompress(unpack.unconsumed_tail, 1)):
            raise ValueError(f"the contents of a storage of {nbytes} bytes have another length")
        contents = np.frombuffer(raw, dtype=np.uint8)
    return Storage(address, nbytes, contents, _text(data["why_unknown"]))


def _module_in(data: Mapping[str, Any]) -> GenericModule:
    census = data["census"]
    counts = None
    if census is not None:
        counts = {(_text(n), _whole(o), _whole(r), _whole(g)): _whole(count) for n, o, r, g, count in census}
    return GenericModule(_text(data["text"]), counts, _text(data["triton_version"]))


def _failure_in(data: Mapping[str, Any]) -> Refusal:
    source = data["source"]
    return Refusal(_text(data["kind"]), _text(data["reason"]), None if source is None else _site_in(source))


def _site_in(data: Mapping[str, Any]) -> Site:
    callers = tuple(_site_in(c) for c in data["callers"])
    return Site(_text(data["file"]), _whole(data["line"]), _whole(data["column"]), _text(data["function"]), callers)


def _text(value: Any) -> str:
    if not isinstance(value, str):
        raise TypeError(f"{value!r} should be text")
    return value


def _whole(value: Any, *, least: int | None = None) -> int:
    if not isinstance(value, int) or isinstance(value, bool):
        raise TypeError(f"{value!r} should be a whole number")
    if least is not None and value < least:
        raise ValueError(f"{value} should be at least {least}")
    return value


def _wholes(values: Any, *, least: int | None = None) -> tuple[int, ...]:
    return tuple(_whole(v, least=least) for v in values)
