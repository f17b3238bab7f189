"""Turns a TTIR module, or its text, into MLIR's generic form by the user's own Triton."""

from __future__ import annotations

import tempfile
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from racefree.errors import InputError, MissingPackage, Refused, UnsupportedVersion
from racefree.ttir import ops

CensusKey = tuple[str, int, int, int]
"""(operation name, operands, results, regions)"""

PRINTED = "<ttir>"
"""The file named by locations that exist only in the printed text, for operations the printer left without one."""

_MODULE = '"builtin.module"('


@dataclass(frozen=True, slots=True)
class GenericModule:
    """A module in MLIR's generic form, with locations.

    `census` counts the operations as Triton's own walk saw them (the module itself left out), so that a reader can prove
    that it lost none; None when no Triton was needed because the text came in generic form.
    """

    text: str
    census: Mapping[CensusKey, int] | None
    triton_version: str = ""


def generic_form(module: Any) -> GenericModule:
    """The generic form of a live `triton._C.libtriton.ir.module`, which is left untouched.

    Raises `Refused("parse")` when Triton cannot read back its own text or no longer prints the generic form on demand,
    `UnsupportedVersion` when it numbers its memory orders otherwise.
    """
    return _reprint(module.str(), getattr(module, "context", None))


def generic_form_of_text(ttir_text: str, *, file: str = PRINTED) -> GenericModule:
    """The generic form of TTIR text. Text that is generic already is taken as it is, and needs no Triton.

    Operations without a location of their own get their place in the text, as lines of `file`.
    Raises `InputError` when the text is no TTIR that the installed Triton reads, `MissingPackage` without Triton.
    """
    if _is_generic(ttir_text):
        return GenericModule(ttir_text, census=None)
    try:
        return _reprint(ttir_text, None, file=file)
    except Refused as refused:
        raise InputError(refused.refusal.reason) from refused


def _is_generic(text: str) -> bool:
    """True when the first line that is no alias, comment or blank opens a generic module."""
    for line in text.splitlines():
        if line.strip() and not line.startswith(("#", "!", "//")):
            return line.startswith(_MODULE)
    return False


def _reprint(text: str, context: Any, *, file: str = PRINTED) -> GenericModule:
    """Parses a private copy of the text into `context` (one that knows all dialects, or None) and prints that."""
    try:
        import triton
        from triton._C.libtriton import ir
    except ImportError as error:
        raise MissingPackage("reading TTIR needs Triton: pip install 'racefree[triton]'") from error
    if changed := ops.renumbered(ir):
        raise UnsupportedVersion(f"Triton {triton.__version__} renumbered {', '.join(changed)}; install 3.7 to 3.9")
    if context is None:
        context = _new_context(ir)
    with tempfile.TemporaryDirectory(prefix="racefree-") as folder:
        path = Path(folder, "module.ttir")
        path.write_text(text)
        try:
            copy = ir.parse_mlir_module(str(path), context)
        except RuntimeError as error:
            reason = f"Triton {triton.__version__} cannot read this TTIR: {error}; use the version that wrote it"
            raise Refused("parse", reason) from error
        finally:
            escaped = str(path)
    census: Counter[CensusKey] = Counter()

    def count(op: Any) -> None:
        census[op.get_name(), op.get_num_operands(), op.get_num_results(), op.get_num_regions()] += 1

    copy.walk(count)
    del census["builtin.module", 0, 0, 1]
    # MLIR prints generically what fails verification, so the private copy gets an attribute of the wrong type.
    copy.set_attr("llvm.data_layout", ir.builder(context).get_int32_attr(1))
    generic = copy.str()
    if not _is_generic(generic):
        raise Refused("parse", f"Triton {triton.__version__} did not print MLIR's generic form")
    quoted = file.replace("\\", "\\\\").replace('"', "\\22")
    return GenericModule(generic.replace(escaped, quoted), dict(census), triton.__version__)


def _new_context(ir: Any) -> Any:
    from triton._C import libtriton

    context = ir.context()
    ir.load_dialects(context)
    for backend in ("nvidia", "amd"):
        load = getattr(getattr(libtriton, backend, None), "load_dialects", None)
        if load is not None:
            load(context)
    return context
