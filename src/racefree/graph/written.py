"""Which arguments of a kernel it may write, told from where its store addresses come from."""

from __future__ import annotations

from collections.abc import Iterator

from racefree.graph.program import Access, Data, For, If, Op, Program, Ptr, Statement, Value, While, accesses, walk

_NOWHERE: frozenset[str] = frozenset()
_ANYWHERE = frozenset(("*",))


def written_parameters(program: Program) -> frozenset[str] | None:
    """The names of the arguments whose memory some store or atomic may reach; None when an address may lead anywhere.

    Addresses are taken to stay in the storage of the argument they are computed from, unless the kernel computes with
    addresses as integers: a distance between two arguments leads from one to the other.
    """
    if any(isinstance(statement, Op) and statement.name == "tt.ptr_to_int" for statement in walk(program.body)):
        return None if any(access.kind.writes for access in accesses(program)) else _NOWHERE
    roots = {p.value.index: frozenset((p.name,)) for p in program.parameters if _is_pointer(p.value)}
    for statement in walk(program.body):
        roots.update((value.index, _ANYWHERE) for value in _pointers_of_no_argument(statement))
    flows = tuple(flow for statement in walk(program.body) for flow in _flows(statement))
    changed = True
    while changed:
        changed = False
        for source, target in flows:
            joined = roots.get(target.index, _NOWHERE) | roots.get(source.index, _NOWHERE)
            if joined != roots.get(target.index, _NOWHERE):
                roots[target.index] = joined
                changed = True
    reached = [roots.get(access.pointer.index, _NOWHERE) for access in accesses(program) if access.kind.writes]
    if any(not origins or origins & _ANYWHERE for origins in reached):
        return None
    return _NOWHERE.union(*reached)


def _pointers_of_no_argument(statement: Statement) -> Iterator[Value]:
    """Pointers that are made from data: loaded ones, and integers turned into pointers."""
    match statement:
        case Access(result=Value() as result):
            made: tuple[Value, ...] = (result,)
        case Op(name="tt.int_to_ptr") | Data():
            made = statement.results
        case _:
            made = ()
    return (value for value in made if _is_pointer(value))


def _is_pointer(value: Value) -> bool:
    return isinstance(value.element, Ptr)


def _flows(statement: Statement) -> Iterator[tuple[Value, Value]]:
    """(from, to) pairs along which a pointer may travel. What a load reads has no known origin."""
    pairs: list[tuple[Value, Value]] = []
    match statement:
        case Op() | Data():
            pairs = [(source, target) for target in statement.results for source in statement.operands]
        case If():
            pairs = list(zip((*statement.then_yields, *statement.else_yields), statement.results * 2, strict=True))
        case For():
            sources = (*statement.inits, *statement.yields)
            pairs = [
                *zip(sources, statement.carried * 2, strict=True),
                *zip(sources, statement.results * 2, strict=True),
            ]
        case While():
            sources = (*statement.inits, *statement.after_yields)
            targets = (*statement.after_args, *statement.results)
            pairs = [
                *zip(sources, statement.before_args * 2, strict=True),
                *zip(statement.forwarded * 2, targets, strict=True),
            ]
        case _:
            pass
    for source, target in pairs:
        if _is_pointer(target):
            yield source, target
