"""Which values a statement depends on."""

from __future__ import annotations

from racefree.graph.program import Access, Assume, Barrier, Data, For, Guard, If, Op, Statement, While


def mentioned(statement: Statement) -> set[int]:
    """The indices of all values that a statement and its bodies mention and that are not its results."""
    match statement:
        case Op() | Data():
            return {o.index for o in statement.operands}
        case Access():
            parts = (statement.pointer, statement.mask, statement.other, *statement.operands)
            return {v.index for v in parts if v is not None}
        case Assume():
            return {statement.condition.index}
        case Barrier():
            return set()
        case Guard():
            return {statement.condition.index}.union(*(mentioned(s) for s in statement.body))
        case If():
            yields = {v.index for v in (statement.condition, *statement.then_yields, *statement.else_yields)}
            return yields.union(*(mentioned(s) for s in (*statement.then_body, *statement.else_body)))
        case For():
            own = (statement.lower, statement.upper, statement.step, *statement.inits, *statement.yields)
            return {v.index for v in own}.union(*(mentioned(s) for s in statement.body))
        case While():
            own = (*statement.inits, statement.condition, *statement.forwarded, *statement.after_yields)
            return {v.index for v in own}.union(*(mentioned(s) for s in (*statement.before, *statement.after)))
