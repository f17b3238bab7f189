"""Which operations rungs may compute, which only make data, and which do nothing to memory or order.

An operation in none of the tables, and without a handler of its own, refuses the program.
"""

from __future__ import annotations

from collections.abc import Mapping

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
    | _named("tt", "clampf precise_divf precise_sqrt fp_to_fp")
)
"""Element (i, j, ...) of each result depends on the same element of the operands only."""

MIXING_DATA = _named("tt", "dot dot_scaled histogram")
"""Any element of a result may depend on any element of an operand."""

SILENT = frozenset(["tt.print", "tt.assert", "cf.assert", "llvm.intr.annotation"])
"""No memory a race could be on, no order, no result: a failed assertion ends the program, which only removes accesses."""

COMBINERS: Mapping[str, str] = {
    "arith.addi": "add",
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

GLOBAL_READ, GLOBAL_WRITE = 2, 4
"""Bits of `ttg.barrier`'s address spaces that concern global memory."""

PURE = INTEGER | MOVEMENT | LANEWISE_DATA | {"tt.bitcast"}
"""Operations that may stand inside the region of a reduction, a scan or an element-wise map."""
