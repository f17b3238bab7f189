"""Reads MLIR types into the access graph's: an element and a tile shape."""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import lru_cache

from racefree.graph.program import Element, Float, Int, Opaque, Ptr

INDEX_BITS = 64
POINTER_BYTES = 8
_GLOBAL = ("", "1")

_FLOAT = re.compile(r"(?:bf|tf|f)(\d+)(?:E\w+)?")
_INT = re.compile(r"[su]?i(\d+)")
_POINTER = re.compile(r"!tt\.ptr<(.*?)(?:, (\d+))?>")
_TENSOR = re.compile(r"tensor<((?:\d+x)*)(.*)>")
_DESCRIPTOR = re.compile(
    r"!tt\.tensordesc<(?:tensor<)?((?:\d+x)+)([^,<>]+|!tt\.ptr<[^<>]*>)(?:, [^<>]*(?:<[^<>]*>)?)?>{1,2}"
)


@dataclass(frozen=True, slots=True)
class BlockType:
    """A tensor descriptor's block: the tile that one descriptor load or store moves."""

    shape: tuple[int, ...]
    element: Element


@lru_cache(maxsize=4096)
def tile(text: str) -> tuple[Element, tuple[int, ...]]:
    """Element and shape of a type: `tensor<4x8xi32>` is (Int(32), (4, 8)), a scalar has shape ()."""
    tensor = _TENSOR.fullmatch(text)
    if tensor is None:
        return element(text), ()
    return element(tensor[2]), tuple(int(size) for size in tensor[1].split("x") if size)


@lru_cache(maxsize=4096)
def element(text: str) -> Element:
    """The element type of a scalar type's text; a type no rung computes with is `Opaque`."""
    if text == "index":
        return Int(INDEX_BITS)
    if match := _INT.fullmatch(text):
        return Int(int(match[1]))
    if match := _FLOAT.fullmatch(text):
        return Float(int(match[1]))
    if match := _POINTER.fullmatch(text):
        size = element_bytes(element(match[1]))
        if size is not None and (match[2] or "") in _GLOBAL:
            return Ptr(size)
    return Opaque(text)


def element_bytes(kind: Element) -> int | None:
    """Bytes of one element in memory (an i1 takes one), or None when it has no such size."""
    match kind:
        case Int(bits) | Float(bits):
            return 1 if bits == 1 else bits // 8 if bits % 8 == 0 else None
        case Ptr():
            return POINTER_BYTES
        case Opaque():
            return None


def pointer_to(kind: Element) -> Element:
    """The type of a global pointer to an element, `Opaque` when such a pointer has no step."""
    size = element_bytes(kind)
    return Opaque(f"pointer to {kind}") if size is None else Ptr(size)


@lru_cache(maxsize=1024)
def block_type(text: str) -> BlockType | None:
    """The block of a tensor descriptor type, or None when the text is no such type."""
    match = _DESCRIPTOR.fullmatch(text)
    if match is None:
        return None
    return BlockType(tuple(int(size) for size in match[1].split("x") if size), element(match[2]))
