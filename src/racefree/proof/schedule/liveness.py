"""After which statement of a body a value is needed no more, so that equal futures are seen to be equal."""

from __future__ import annotations

from racefree.graph.program import Access, Assume, Barrier, Data, For, Guard, If, Op, Program, Statement, Value, While


def last_uses(program: Program) -> dict[tuple[int, int], tuple[int, ...]]:
    """(identity of a body, position) -> values of that body no later statement uses.

    A value defined in a `Guard` belongs to the body around the guard, for it stays visible there.
    """
    out: dict[tuple[int, int], tuple[int, ...]] = {}
    parameters = {p.value.index for p in program.parameters}
    _body(program.body, parameters, (), out)
    return out


def _body(
    body: tuple[Statement, ...], bound: set[int], after: tuple[Value, ...], out: dict[tuple[int, int], tuple[int, ...]]
) -> None:
    defined = set(bound)
    last: dict[int, int] = {}
    for position, statement in enumerate(body):
        defined |= _defines(statement)
        for index in _uses(statement):
            last[index] = position
    kept = {v.index for v in after}
    for position, statement in enumerate(body):
        dead = tuple(sorted(k for k, p in last.items() if p == position and k in defined and k not in kept))
        unused = tuple(sorted(k for k in _defines(statement) if k not in last and k not in kept))
        out[(id(body), position)] = dead + unused
        _inside(statement, out)
    out[(id(body), -1)] = tuple(sorted(defined))


def _inside(statement: Statement, out: dict[tuple[int, int], tuple[int, ...]]) -> None:
    match statement:
        case If():
            _body(statement.then_body, set(), statement.then_yields, out)
            _body(statement.else_body, set(), statement.else_yields, out)
        case For():
            bound = {v.index for v in (*statement.carried, statement.induction)}
            _body(statement.body, bound, statement.yields, out)
        case While():
            _body(statement.before, {v.index for v in statement.before_args}, (statement.condition, *statement.forwarded), out)
            _body(statement.after, {v.index for v in statement.after_args}, statement.after_yields, out)
        case Guard():
            _guard(statement, out)
        case _:
            pass


def _guard(statement: Guard, out: dict[tuple[int, int], tuple[int, ...]]) -> None:
    for position, inner in enumerate(statement.body):
        out[(id(statement.body), position)] = ()
        _inside(inner, out)
    out[(id(statement.body), -1)] = ()


def _defines(statement: Statement) -> set[int]:
    match statement:
        case Op() | Data() | If() | For() | While():
            return {r.index for r in statement.results}
        case Access():
            return set() if statement.result is None else {statement.result.index}
        case Guard():
            return set().union(*(_defines(s) for s in statement.body))
        case Barrier() | Assume():
            return set()


def _uses(statement: Statement) -> set[int]:
    """All values a statement and its bodies mention that are not its results."""
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
            return {statement.condition.index}.union(*(_uses(s) for s in statement.body))
        case If():
            yields = {v.index for v in (statement.condition, *statement.then_yields, *statement.else_yields)}
            return yields.union(*(_uses(s) for s in (*statement.then_body, *statement.else_body)))
        case For():
            own = (statement.lower, statement.upper, statement.step, *statement.inits, *statement.yields)
            return {v.index for v in own}.union(*(_uses(s) for s in statement.body))
        case While():
            own = (*statement.inits, statement.condition, *statement.forwarded, *statement.after_yields)
            return {v.index for v in own}.union(*(_uses(s) for s in (*statement.before, *statement.after)))
