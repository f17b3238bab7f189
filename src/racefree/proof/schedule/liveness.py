"""After which statement of a body a value is needed no more, so that equal futures are seen to be equal."""

from __future__ import annotations

from racefree.graph.mentions import mentioned
from racefree.graph.program import Access, Assume, Barrier, Data, For, Guard, If, Op, Program, Statement, Value, While
from racefree.proof.schedule.relevance import Relevance


def last_decisions(program: Program, relevance: Relevance) -> dict[tuple[int, int], tuple[int, ...]]:
    """Like `last_uses`, but where a value stops deciding anything: from there on only what it depends on matters."""
    out: dict[tuple[int, int], tuple[int, ...]] = {}

    def visit(body: tuple[Statement, ...], bound: set[int], kept: set[int]) -> None:
        defined = bound.union(*(_defines(s) for s in body))
        last: dict[int, int] = {}
        for position, statement in enumerate(body):
            for index in _deciding(statement, relevance) & defined:
                last[index] = position
        for position, statement in enumerate(body):
            out[(id(body), position)] = tuple(sorted(k for k, p in last.items() if p == position and k not in kept))
            inside(statement)

    def inside(statement: Statement) -> None:
        match statement:
            case If():
                visit(statement.then_body, set(), _indices(statement.then_yields))
                visit(statement.else_body, set(), _indices(statement.else_yields))
            case For():
                visit(statement.body, _indices((*statement.carried, statement.induction)), _indices(statement.yields))
            case While():
                ends = _indices((statement.condition, *statement.forwarded))
                visit(statement.before, _indices(statement.before_args), ends)
                visit(statement.after, _indices(statement.after_args), _indices(statement.after_yields))
            case Guard():
                for inner in statement.body:
                    inside(inner)
            case _:
                pass

    visit(program.body, _indices(tuple(p.value for p in program.parameters)), set())
    return out


def _indices(values: tuple[Value, ...]) -> set[int]:
    return {v.index for v in values}


def _deciding(statement: Statement, relevance: Relevance) -> set[int]:
    """The values whose integers a statement needs (its bodies included)."""
    match statement:
        case Op() | Data():
            return mentioned(statement) if any(r.index in relevance.values for r in statement.results) else set()
        case Access():
            parts = (statement.pointer, statement.mask, statement.other)
            found = {v.index for v in parts if v is not None}
            return found | (_indices(statement.operands) if statement.index in relevance.valued else set())
        case Guard():
            return {statement.condition.index}.union(*(_deciding(s, relevance) for s in statement.body))
        case _:
            return mentioned(statement)


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
        for index in mentioned(statement):
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
            _body(
                statement.before,
                {v.index for v in statement.before_args},
                (statement.condition, *statement.forwarded),
                out,
            )
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
