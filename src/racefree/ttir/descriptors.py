"""Tensor descriptors, lowered to the pointer arithmetic, masks and plain accesses they stand for."""

from __future__ import annotations

from racefree.ttir.reader import Handler

HANDLERS: dict[str, Handler] = {}
