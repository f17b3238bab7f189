"""Which operations rungs may compute, which only make data, and which do nothing to memory or order.

An operation in none of the tables, and without a handler of its own, refuses the program.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from racefree.access import Scope, Sem

CMPI_PREDICATES = ("eq", "ne", "slt", "sle", "sgt", "sge", "ult", "ule", "ugt", "uge")


def _named(dialect: str, names: str) -> frozenset[str]:
    return frozenset(f"{dialect}.{name}" for name in names.split())


INTEGER = (
    _named(
        "arith",
        "addi subi muli divsi divui remsi remui ceildivsi ceildivui floordivsi andi ori xori shli shrsi shrui minsi minui "
        "maxsi maxui cmpi extsi extui trunci index_cast index_castui bitcast addui_extended subui_extended "
        "mulsi_extended mului_extended",
    )
    | _named("math", "absi ctlz cttz ctpop ipowi")
    | _named("tt", "mulhiui")
)
"""Element by element over integers: computed when all operands and results are integers, else data."""

MOVEMENT = (
    _named("arith", "select constant")
    | _named("ub", "poison")
    | _named(
        "tt",
        "make_range splat unsplat broadcast expand_dims reshape trans join split cat get_program_id get_num_programs "
        "addptr int_to_ptr ptr_to_int",
    )
)
"""Computed whatever the element type: they move, choose or make elements."""

LANEWISE_DATA = (
    _named(
        "arith",
        "addf subf mulf divf remf negf cmpf minimumf maximumf minnumf maxnumf extf truncf convertf sitofp uitofp fptosi "
        "fptoui scaling_extf scaling_truncf flush_denormals",
    )
    | _named(
        "math",
        "absf acos acosh asin asinh atan atan2 atanh cbrt ceil clampf copysign cos cosh erf erfc exp exp2 expm1 floor "
        "fma fpowi isfinite isinf isnan isnormal log log10 log1p log2 powf round roundeven rsqrt sin sincos sinh sqrt "
        "tan tanh trunc",
    )
    | _named("tt", "clampf approx_divf precise_divf precise_sqrt fp_to_fp")
)
"""Element (i, j, ...) of each result depends on the same element of the operands only."""

MIXING_DATA = _named("tt", "dot dot_scaled")
"""Any element of a result may depend on any element of an operand."""

SILENT = (
    _named("tt", "assert grid_dependency_wait grid_dependency_launch_dependents")
    | _named("cf", "assert")
    | _named("llvm", "intr.annotation")
)
"""No memory a race could be on, no order inside a launch, no result.

A failed assertion ends the program, which only removes accesses; a grid dependency orders one launch after another.
Assertions are compiled in debug builds only, so the barrier that one on a tile brings there is no order to rely on.
"""

COMBINERS: Mapping[str, str] = {
    "arith.addi": "add",
    "arith.muli": "mul",
    "arith.andi": "and",
    "arith.ori": "or",
    "arith.xori": "xor",
    "arith.maxsi": "max",
    "arith.minsi": "min",
    "arith.maxui": "maxu",
    "arith.minui": "minu",
}
"""Associative and commutative integer operations a reduction or scan may be built from, with their names in the graph."""

RMW_NAMES: Mapping[int, str] = {
    1: "and",
    2: "or",
    3: "xor",
    4: "add",
    5: "fadd",
    6: "max",
    7: "min",
    8: "umax",
    9: "umin",
    10: "exch",
}
DESCRIPTOR_RMW_NAMES: Mapping[int, str] = {
    1: "add",
    2: "min",
    3: "max",
    4: "inc",
    5: "dec",
    6: "and",
    7: "or",
    8: "xor",
}
SEMANTICS: Mapping[int, Sem] = {1: Sem.RELAXED, 2: Sem.ACQUIRE, 3: Sem.RELEASE, 4: Sem.ACQ_REL}
SCOPES: Mapping[int, Scope] = {1: Scope.GPU, 2: Scope.CTA, 3: Scope.SYSTEM}
"""Numbers the generic form prints for enumerations: the same in Triton 3.7 to 3.9, and compared with the installed one."""

_TRITON_NAMES: Mapping[str, Mapping[int, str]] = {
    "ATOMIC_OP": {number: "XCHG" if name == "exch" else name.upper() for number, name in RMW_NAMES.items()},
    "DESCRIPTOR_REDUCE_KIND": {number: name.upper() for number, name in DESCRIPTOR_RMW_NAMES.items()},
    "MEM_SEMANTIC": {1: "RELAXED", 2: "ACQUIRE", 3: "RELEASE", 4: "ACQUIRE_RELEASE"},
    "MEM_SYNC_SCOPE": {1: "GPU", 2: "CTA", 3: "SYSTEM"},
}


def renumbered(ir: Any) -> tuple[str, ...]:
    """The enumerations of `triton._C.libtriton.ir` that number their members otherwise than the tables above."""
    return tuple(
        name
        for name, members in _TRITON_NAMES.items()
        if {member: value.value for member, value in getattr(ir, name).__members__.items()}
        != {member: number for number, member in members.items()}
    )


GLOBAL_READ, GLOBAL_WRITE = 2, 4
"""Bits of `ttg.barrier`'s address spaces that concern global memory."""

PURE = INTEGER | MOVEMENT | LANEWISE_DATA | {"tt.bitcast"}
"""Operations that may stand inside the region of a reduction, a scan or an element-wise map."""
