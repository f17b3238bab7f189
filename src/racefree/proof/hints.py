"""What usually mends a race, told from the shape of the race and of its kernel. A hint says only what holds of them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

from racefree.access import Kind
from racefree.graph.launch import LaunchFacts
from racefree.graph.program import Access, Data, Op, Program, Statement, Value, While, accesses, walk
from racefree.proof.aliasing import leaves, overlap, share_storage, tensor_of
from racefree.proof.footprint.slicing import flows
from racefree.proof.formula.terms import Binary, Term, Varies, coefficients, elements, names
from racefree.proof.meeting import line_of, meeting_hint
from racefree.proof.outcome import Witness
from racefree.verdict import Cause

_CASTS = frozenset(("arith.extf", "arith.truncf", "arith.extsi", "arith.extui", "arith.trunci", "tt.bitcast"))


@dataclass(frozen=True, slots=True)
class Hint:
    cause: Cause
    text: str


@dataclass(frozen=True, slots=True)
class Question:
    """A race, the tensors it goes through, and the formulas of both addresses, where they can be said."""

    program: Program
    facts: LaunchFacts
    race: Witness
    tensors: tuple[str, str]
    terms: tuple[Term | None, Term | None]

    @property
    def accesses(self) -> tuple[Access, Access]:
        return self.race.first.access, self.race.second.access

    @property
    def inside(self) -> bool:
        """True when one program instance races with itself."""
        return self.race.first.program == self.race.second.program

    @property
    def once(self) -> bool:
        """True when both sides are the same access."""
        first, second = self.accesses
        return first.index == second.index

    @property
    def alike(self) -> bool:
        """True when both sides compute their address in the same way."""
        first, second = self.accesses
        return first.pointer.index == second.pointer.index

    @property
    def writer(self) -> Access:
        first, second = self.accesses
        return first if first.kind.writes else second


def hint(question: Question) -> Hint:
    """The first cause that fits, the most telling first."""
    ways = (
        _aliased,
        _atomics,
        _duplicates,
        *((_lanes, _barrier) if question.inside else (_blocks, _loops, _meeting, _waiting, _update, _axis, _same)),
    )
    return next((found for way in ways if (found := way(question)) is not None), _apart(question))


def _aliased(question: Question) -> Hint | None:
    first, second = question.tensors
    one, other = (tensor_of(question.facts, name) for name in question.tensors)
    if first == second or one is None or other is None or not share_storage(one, other):
        return None
    race = question.race
    if overlap(one, other):
        return Hint(Cause.ALIASED, f"{first} and {second} share storage: pass tensors that do not overlap")
    for side, own, name, into in ((race.first, one, first, second), (race.second, other, second, first)):
        if leaves(side, own):
            said = f"the {side.access.kind.value} of {line_of(side.access, race)} leaves {name}"
            return Hint(
                Cause.MISSING_MASK, f"{said} and gets into {into}, which lies in the same storage: mask it there"
            )
    return None


def _atomics(question: Question) -> Hint | None:
    first, second = question.accesses
    if not first.kind.atomic and not second.kind.atomic:
        return None
    if first.kind.atomic and second.kind.atomic:
        narrow = next((a for a in (first, second) if a.scope is not None and not a.scope.spans_programs), None)
        if narrow is not None and not question.inside:
            at = line_of(narrow, question.race)
            return Hint(Cause.NARROW_SCOPE, f'the atomic of {at} has scope="cta": give it scope="gpu"')
        return Hint(Cause.ATOMICS_DIFFER, "give both atomics the same address and the same element type")
    plain = second if first.kind.atomic else first
    match plain.kind.writes, question.inside:
        case True, True:
            text = "put tl.debug_barrier() between the two accesses, or make the plain store an atomic too"
        case True, False:
            text = "initialise the memory before the launch, or make the plain store an atomic too"
        case False, True:
            alone = "where other programs leave the element alone meanwhile"
            text = f"make the load an atomic read, or put tl.debug_barrier() between the two accesses {alone}"
        case _:
            text = (
                "read the value in a later launch, or make the load an atomic read and order it by release and acquire"
            )
    return Hint(Cause.ATOMIC_AND_PLAIN, text)


def _duplicates(question: Question) -> Hint | None:
    """Two entries of a table of indices that are the same."""
    first, second = question.terms
    if not question.once or first is None or second is None:
        return None
    read = [list(elements(term)) for term in (first, second)]
    if not read[0] or len(read[0]) != len(read[1]):
        return None
    for one, other in zip(*read, strict=True):
        same = one.tensor == other.tensor and one.value == other.value
        if same and one.index.value != other.index.value:
            both = f"{one.tensor}[{one.index.value}] and {other.tensor}[{other.index.value}] are both {one.value}"
            return Hint(Cause.DUPLICATE_INDICES, f"{both}: use an atomic, or indices that are all different")
    return None


def _lanes(question: Question) -> Hint | None:
    """Lanes that meet in one store, or in a load and the store through the same pointers that follows it."""
    race = question.race
    if not question.alike or race.first.iterations != race.second.iterations:
        return None
    text = "several lanes of one store share an element: mask all but one of them, or use an atomic"
    if not question.once:
        first, second = question.accesses
        masks = [None if access.mask is None else access.mask.index for access in (first, second)]
        found = _update(question) if masks[0] == masks[1] and race.first.lane != race.second.lane else None
        return found if found is None else replace(found, cause=Cause.LANES_SHARE)
    return Hint(Cause.LANES_SHARE, text)


def _barrier(question: Question) -> Hint:
    race = question.race
    around = race.first.iterations, race.second.iterations
    if len(around[0]) == len(around[1]) and around[0] != around[1]:
        where = "in the loop, between what one iteration does here and what a later one does"
    else:
        where = "between the two accesses"
    return Hint(Cause.MISSING_BARRIER, f"put tl.debug_barrier() {where}, or keep each element on one lane")


def _blocks(question: Question) -> Hint | None:
    """The programs lie closer together than what each of them touches."""
    first, second = question.terms
    axes = _differing(question)
    if not question.alike or len(axes) != 1 or first is None or second is None:
        return None
    growth = coefficients(first)
    program, apart = _named(first, f"pid[{axes[0]}]", "pid"), _differences(first, second)
    if not growth or program is None or not growth.get(program) or apart is None:
        return None
    moved = [name for name in apart if name != program]
    if len(moved) != 1 or not moved[0].startswith("lane") or apart.get(program) is None:
        return None
    lane, shape = moved[0], question.accesses[0].shape
    extent = shape[int(lane[5:-1])] if lane.endswith("]") else next(n for n in shape if n > 1)
    step, rest = divmod(abs(growth[program]), abs(growth[lane]) or 1)
    if rest or not 0 < step < extent:
        return None
    unit = "elements" if abs(growth[lane]) == 1 else f"steps of {abs(growth[lane])} elements"
    along = "" if len([n for n in shape if n > 1]) == 1 else f" along {lane}"
    said = f"programs start {step} {unit} apart, but a block spans {extent}{along}"
    if question.writer.mask is not None:
        return Hint(Cause.STRIDE_BELOW_BLOCK, f"{said}: multiply the program id by the block size")
    if _scaled_by_argument(first, program):
        return Hint(Cause.MISSING_MASK, f"{said} and the {_word(question)} has no mask: mask the lanes from {step} on")
    return Hint(
        Cause.STRIDE_BELOW_BLOCK,
        f"{said}: multiply the program id by the block size, or mask the lanes from {step} on",
    )


def _loops(question: Question) -> Hint | None:
    """A loop that walks from the block of one program into that of another."""
    first, second = question.terms
    axes = _differing(question)
    if not question.alike or len(axes) != 1 or first is None or second is None:
        return None
    growth, apart = coefficients(first), _differences(first, second)
    program = _named(first, f"pid[{axes[0]}]", "pid")
    if not growth or apart is None or program is None or not growth.get(program):
        return None
    rounds = [name for name in apart if name.startswith("iteration")]
    if not rounds:
        return None
    onwards, rest = divmod(abs(growth.get(rounds[0], 0)), abs(growth[program]))
    there = question.facts.grid[axes[0]]
    if len(rounds) == 1 and not rest and 0 < onwards < there:
        said = f"a round of the loop moves on by {onwards} program{'s' * (onwards > 1)}, and there are {there}"
        return Hint(Cause.LOOP_TOO_LONG, f"{said}: step by tl.num_programs({axes[0]}), or end the loop earlier")
    said = f"programs start {abs(growth[program])} elements apart, and the loop of one reaches the start of another"
    return Hint(Cause.LOOP_TOO_LONG, f"{said}: end it earlier, or start the programs further apart")


def _meeting(question: Question) -> Hint | None:
    found = meeting_hint(question.program, question.facts, question.race)
    return None if found is None else Hint(*found)


def _waiting(question: Question) -> Hint | None:
    """A plain load of what a loop loads again in each round until it is something else: it waits for a store."""
    polled = {
        a.pointer.index for a in accesses(question.program) if a.kind is Kind.LOAD and _polls(question.program, a)
    }
    looked = next((a for a in question.accesses if a.kind is Kind.LOAD and a.pointer.index in polled), None)
    if looked is None:
        return None
    said = f"a loop waits for what {line_of(looked, question.race)} loads"
    how = 'store it by tl.atomic_xchg(..., sem="release"), and look by tl.atomic_add(..., 0, sem="acquire")'
    return Hint(Cause.WANTS_ATOMIC, f"{said}, and only atomics order what programs hand on to one another: {how}")


def _polls(program: Program, load: Access) -> bool:
    around = [s for s in walk(program.body) if isinstance(s, While) and any(each is load for each in walk((s,)))]
    if not around or load.result is None:
        return False
    loop = around[-1]
    sources = _sources(program)
    within = {value.index for statement in walk((loop,)) for value, _ in flows(statement)}
    carried = {value.index for value in (*loop.before_args, *loop.after_args)}
    decides = load.result.index in _depended_on(loop.condition, sources)
    return decides and carried.isdisjoint(_depended_on(load.pointer, {v: sources[v] for v in within}))


def _depended_on(value: Value, sources: Mapping[int, tuple[Value, ...]]) -> set[int]:
    """The values (by index) that a value is computed from, and itself."""
    seen: set[int] = set()
    todo = [value.index]
    while todo:
        index = todo.pop()
        if index not in seen:
            seen.add(index)
            todo += [source.index for source in sources.get(index, ())]
    return seen


def _update(question: Question) -> Hint | None:
    """A store of what a load of the same address gave, changed."""
    for store in question.accesses:
        if store.kind is not Kind.STORE or not store.operands or not question.alike:
            continue
        operation = _updates(question.program, store)
        if operation is None:
            continue
        added = operation in ("arith.addf", "arith.addi", "arith.subf", "arith.subi")
        atomic = "tl.atomic_add" if added else "an atomic (tl.atomic_max, tl.atomic_cas, ...)"
        said = f"{line_of(store, question.race)} stores a value computed from a load of the same element"
        who = "lanes" if question.inside else "programs"
        return Hint(Cause.WANTS_ATOMIC, f"{said}, and {who} lose each other's updates: use {atomic}")
    return None


def _axis(question: Question) -> Hint | None:
    """An address that does not depend on the program at all, as far as the two differ."""
    if not question.alike:
        return None
    used = _program_ids(question.program, question.accesses[0].pointer)
    axes = _differing(question)
    if used is None or used & set(axes):
        return None
    said = " and ".join(f"tl.program_id({axis})" for axis in axes)
    text = f"the address does not use {said}, in which the two programs differ: add it, or let one program {_word(question)}"
    return Hint(Cause.MISSING_PROGRAM_ID, text)


def _same(question: Question) -> Hint | None:
    """One element for both programs, although the address depends on what they differ in."""
    first, second = question.race.first, question.race.second
    alike = first.lane == second.lane and first.iterations == second.iterations
    if not question.alike or not alike or first.address_bytes is None or first.address_bytes != second.address_bytes:
        return None
    text = f"the address comes out the same for both programs: give each its own, or let one program {_word(question)}"
    return Hint(Cause.SAME_ADDRESS, text)


def _apart(question: Question) -> Hint:
    first, second = question.accesses
    if first.kind.writes and second.kind.writes:
        return Hint(Cause.SHARED, "give each program its own elements, or split the kernel into two launches")
    text = "one program loads what another stores: store to another tensor, or split the kernel into two launches"
    return Hint(Cause.SHARED, text)


# ---- what a hint rests on ----------------------------------------------------------------------------------------------


def _word(question: Question) -> str:
    return "store" if question.writer.kind is Kind.STORE else "access"


def _differing(question: Question) -> list[int]:
    first, second = question.race.first.program, question.race.second.program
    return [axis for axis in range(3) if first[axis] != second[axis]]


def _named(term: Term, *wanted: str) -> str | None:
    return next((name.text for name in names(term) if name.text in wanted), None)


def _differences(first: Term, second: Term) -> dict[str, tuple[int, int]] | None:
    """The names that stand for different values in the two formulas, which must be of the same names."""
    values = [{name.text: name.value for name in names(term)} for term in (first, second)]
    if values[0].keys() != values[1].keys():
        return None
    pairs = {name: (values[0][name], values[1][name]) for name in values[0]}
    return {name: pair for name, pair in pairs.items() if pair[0] != pair[1]}


def _scaled_by_argument(term: Term, program: str) -> bool:
    """Whether the program id is multiplied by something that an argument of the launch decides."""
    match term:
        case Binary("*", left, right):
            for scaled, by in ((left, right), (right, left)):
                if by.varies is Varies.LAUNCH and any(name.text == program for name in names(scaled)):
                    return True
            return _scaled_by_argument(left, program) or _scaled_by_argument(right, program)
        case Binary(_, left, right):
            return _scaled_by_argument(left, program) or _scaled_by_argument(right, program)
        case _:
            return False


def _sources(program: Program) -> dict[int, tuple[Value, ...]]:
    return {value.index: sources for statement in walk(program.body) for value, sources in flows(statement)}


def _program_ids(program: Program, value: Value) -> set[int] | None:
    """The axes of the program id that a value depends on; None when it depends on memory."""
    defined: dict[int, Statement] = {}
    for statement in walk(program.body):
        defined.update({made.index: statement for made, _ in flows(statement)})
    sources = _sources(program)
    found: set[int] = set()
    seen: set[int] = set()
    todo = [value.index]
    while todo:
        index = todo.pop()
        if index in seen:
            continue
        seen.add(index)
        by = defined.get(index)
        if isinstance(by, Access | Data):
            return None
        axis = by.attributes.get("axis") if isinstance(by, Op) and by.name == "tt.get_program_id" else None
        if isinstance(axis, int):
            found.add(axis)
        todo += [source.index for source in sources.get(index, ())]
    return found


def _updates(program: Program, store: Access) -> str | None:
    """The operation that makes a stored value out of a load through the same pointer, if that is how it is made."""
    made = {r.index: s for s in walk(program.body) if isinstance(s, Op | Data) for r in s.results}
    loads = {
        s.result.index
        for s in walk(program.body)
        if isinstance(s, Access) and s.result is not None and s.pointer.index == store.pointer.index
    }
    value = store.operands[0]
    while (by := made.get(value.index)) is not None and by.name in _CASTS:
        value = by.operands[0]
    if by is None:
        return None
    for operand in by.operands[: 1 if by.name in ("arith.subf", "arith.subi") else None]:
        while (inner := made.get(operand.index)) is not None and inner.name in _CASTS:
            operand = inner.operands[0]
        if operand.index in loads:
            return by.name
    return None
