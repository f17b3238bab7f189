"""When two configs of launches are one question: equal keys have equal answers."""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING

from racefree.graph.launch import Descriptor, Scalar, Storage, Tensor

if TYPE_CHECKING:
    from racefree.proof.rungs import Options
    from racefree.triton.launches import CapturedConfig


def block_threads(config: CapturedConfig) -> int:
    """Of one block of a program instance."""
    return 0 if config.facts is None else config.facts.num_warps * config.facts.warp_size


def config_key(config: CapturedConfig, *, threads: bool = True) -> bytes:
    """Equal keys mean equal questions: same module, same facts, contents included; config kwargs do not count.

    Without `threads`, neither does the number of threads of each block.
    """
    digest = hashlib.blake2b(digest_size=32)

    def add(*values: object) -> None:
        digest.update(repr(values).encode())

    if config.module is None or config.facts is None:
        add(config.config, config.failure)
        return digest.digest()
    facts = config.facts
    add(config.module.text, facts.kernel, facts.grid, facts.target, facts.triton_version, facts.num_ctas)
    if threads:
        add(facts.num_warps, facts.warp_size)
    for name, argument in facts.arguments.items():
        add(name, type(argument).__name__)
        match argument:
            case Scalar():
                add(argument.value)
            case Tensor():
                _add_tensor(digest, argument)
            case Descriptor():
                add(argument.shape, argument.strides, argument.block_shape, argument.padding)
                _add_tensor(digest, argument.base)
    return digest.digest()


def with_options(key: bytes, options: Options) -> bytes:
    """A question's key once the options, which are the same throughout one run, count too."""
    return key + repr(options).encode()


def _add_tensor(digest: hashlib.blake2b, tensor: Tensor) -> None:
    shape = (tensor.address, tensor.element_bytes, tensor.dtype, tensor.shape, tensor.strides)
    digest.update(repr(shape).encode())
    storage: Storage = tensor.storage
    digest.update(repr((storage.address, storage.nbytes, storage.contents is None, storage.why_unknown)).encode())
    if storage.contents is not None:
        digest.update(storage.contents.data)
