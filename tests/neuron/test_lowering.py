"""What the keys of a document mean for order and overlap, each shown by a verdict."""

from __future__ import annotations

import copy
import json
from pathlib import Path
from typing import Any

import pytest
from bir_documents import STANDARD, ap, instruction, load, location, module, tensor

from racefree.engines.check import check
from racefree.engines.records import EngineVerdict, OrderVerdict
from racefree.errors import InputError
from racefree.neuron.lowering import lower, lower_all
from racefree.neuron.reading import from_value
from racefree.neuron.reading import load as load_file
from racefree.verdict import Status

EXAMPLES = Path(__file__).parents[2] / "examples" / "engine"

Pairs = set[tuple[str, str]]


def verdict(document: Any, order: str = "both") -> EngineVerdict:
    (program,) = lower_all(from_value(document))
    return check(program, order=order)


def under(document: Any, order: str) -> OrderVerdict:
    (only,) = verdict(document, order).orders
    return only


def racing(found: OrderVerdict) -> Pairs:
    return {(race.first.name, race.second.name) for race in found.races}


def refusals(found: OrderVerdict) -> set[str]:
    return {refusal.kind for refusal in found.refusals}


# ---- the two documents of the format notes ---------------------------------------------------------------------------


def test_the_clean_example() -> None:
    found = check(lower_all(load_file(EXAMPLES / "clean.json"))[0])
    assert {one.order: one.status for one in found.orders} == {"dependencies": Status.OK, "semaphores": Status.OK}
    assert found.disagreements == ()


def test_the_racy_example() -> None:
    found = check(lower_all(load_file(EXAMPLES / "racy.json"))[0])
    assert [one.order for one in found.orders] == ["dependencies", "semaphores"]
    for one in found.orders:
        (race,) = one.races
        assert (race.race_type, race.first.name, race.second.name, race.first.buffer) == ("WAR", "I-1", "I-3", "a")
        assert (race.first.write, race.second.write) == (False, True)
        (edge,) = one.missing_edges
        assert (edge.source, edge.target) == ("I-1", "I-3")


# ---- asynchronous work -----------------------------------------------------------------------------------------------


def reader(**more: Any) -> Any:
    return instruction("R", "SP", opcode="TensorCopy", reads=[ap("a")], writes=[ap("b")], **more)


def test_a_transfer_completes_off_the_engine_that_issued_it() -> None:
    document = module([load("L", "a", updates=[(1, 1)]), reader()])
    assert racing(under(document, "dependencies")) == racing(under(document, "semaphores")) == {("L", "R")}


def test_waiting_for_its_semaphore_or_depending_on_it_orders_a_transfer() -> None:
    document = module([load("L", "a", updates=[(1, 16)]), reader(after=["L"], waits=[("L", 1, 16)])])
    assert verdict(document).status is Status.OK


@pytest.mark.parametrize(("value", "status"), [(16, Status.OK), (15, Status.RACES), (1, Status.RACES)])
def test_a_transfer_that_adds_sixteen_has_completed_only_at_sixteen(value: int, status: Status) -> None:
    document = module([load("L", "a", updates=[(1, 16)]), reader(waits=[("L", 1, value)])])
    assert under(document, "semaphores").status is status


def test_dma_opcodes_are_asynchronous_without_a_queue_too() -> None:
    document = module([load("L", "a", queue=None), reader()])
    assert racing(under(document, "dependencies")) == {("L", "R")}


def trigger(**more: Any) -> Any:
    return instruction("T", "Pool", opcode="DMATrigger", queue="q", dma_blocks=["B"], **more)


def descriptor_queue(**more: Any) -> Any:
    descriptor = instruction("D", "DMA", opcode="DMADescriptorCopy", reads=[ap("x", [[1, 64]])], writes=[ap("a")])
    block = instruction("B", "DMA", opcode="DMABlock", blocks=[{"name": "body", "instructions": [descriptor]}], **more)
    return [{"name": "q", "blocks": [{"instructions": [block]}]}]


def test_a_trigger_starts_the_work_of_its_descriptor_block() -> None:
    document = module([trigger(), reader()], queues=descriptor_queue())
    assert racing(under(document, "dependencies")) == {("B", "R")}


@pytest.mark.parametrize("source", ["T", "B"])
def test_depending_on_a_trigger_means_its_blocks(source: str) -> None:
    document = module([trigger(), reader(after=[source])], queues=descriptor_queue())
    assert under(document, "dependencies").status is Status.OK


def test_waits_name_the_block_and_its_update_counts() -> None:
    document = module([trigger(), reader(waits=[("B", 9, 16)])], queues=descriptor_queue(updates=[(9, 16)]))
    assert under(document, "semaphores").status is Status.OK
    assert verdict(document, "semaphores").disagreements == ()


def test_two_transfers_of_one_queue_are_told_apart_from_other_races() -> None:
    document = module([load("L", "a"), load("M", "a")])
    (race,) = under(document, "dependencies").races
    assert (race.race_type, race.queue_order_only) == ("WAW", True)
    (race,) = under(module([load("L", "a"), load("M", "a", queue="r")]), "dependencies").races
    assert race.queue_order_only is False


# ---- barriers, resets, blocks and loops ------------------------------------------------------------------------------


def barrier(name: str, **more: Any) -> Any:
    return instruction(name, "ALL", opcode="AllEngineBarrier", **more)


def reset(*group: int) -> Any:
    return instruction("Z", "ALL", opcode="GroupResetSemaphores", sema_group=list(group))


WRITE = instruction("W", "DVE", writes=[ap("a")], updates=[(5, 1)])
READ = instruction("R", "Pool", reads=[ap("a")], writes=[ap("b")], waits=[("W", 5, 1)])


def test_a_barrier_on_all_engines_orders_what_surrounds_it() -> None:
    plain = [instruction("W", "DVE", writes=[ap("a")]), instruction("R", "Pool", reads=[ap("a")])]
    assert racing(under(module(plain), "dependencies")) == {("W", "R")}
    assert under(module([plain[0], barrier("B"), plain[1]]), "dependencies").status is Status.OK


def test_other_instructions_on_all_engines_order_nothing() -> None:
    plain = [instruction("W", "DVE", writes=[ap("a")]), instruction("R", "Pool", reads=[ap("a")])]
    drain = instruction("D", "ALL", opcode="Drain")
    assert racing(under(module([plain[0], drain, plain[1]]), "dependencies")) == {("W", "R")}


def test_a_barrier_does_not_wait_for_transfers() -> None:
    document = module([load("L", "a"), barrier("B"), instruction("R", "Pool", reads=[ap("a")])])
    assert racing(under(document, "dependencies")) == {("L", "R")}


def test_a_reset_between_barriers_starts_the_count_anew() -> None:
    second = [instruction("W2", "DVE", writes=[ap("a")], updates=[(5, 1)]),
              instruction("R2", "Pool", reads=[ap("a")], waits=[("W2", 5, 1)])]  # fmt: skip
    fence = [barrier("B0"), reset(5), barrier("B1")]
    document = module({"Block1": [WRITE, READ, *fence], "Block2": second})
    assert under(document, "semaphores").status is Status.OK
    stale = module({"Block1": [WRITE, READ, barrier("B0")], "Block2": second})
    assert racing(under(stale, "semaphores")) == {("W2", "R2")}


def test_a_reset_that_nothing_fences_is_refused() -> None:
    again = [instruction("W2", "DVE", updates=[(5, 1)]), instruction("R2", "Pool", waits=[("W2", 5, 1)])]
    document = module([WRITE, READ, reset(5), *again])
    assert under(document, "semaphores").status is Status.UNSUPPORTED
    assert refusals(under(document, "semaphores")) == {"unfenced-semaphore-reset"}


def branch(engine: str, back: str, out: str) -> Any:
    return instruction("J", engine, opcode="CompareAndBranch", comp_op="lt", on_true=back, on_false=out)


def loop(body: list[Any]) -> Any:
    engines = sorted({one["engine"] for one in body if one["engine"] != "ALL"})
    return {"Body": [*body, *(branch(engine, "Body", "Exit") for engine in engines)], "Exit": []}


def test_a_block_that_branches_to_itself_is_a_loop() -> None:
    body = [instruction("W", "DVE", writes=[ap("a")]), instruction("R", "Pool", reads=[ap("a")], after=["W"])]
    (race,) = under(module(loop(body)), "dependencies").races
    assert (race.race_type, race.first.name, race.second.name, race.distance) == ("WAR", "R", "W", 1)


@pytest.mark.parametrize("entry", [["R", "Anti"], ["R", "Anti", [1]]])
def test_a_loop_carried_dependency_orders_the_next_iteration(entry: Any) -> None:
    body = [instruction("W", "DVE", writes=[ap("a")], loop_carried_dependencies=[entry]),
            instruction("R", "Pool", reads=[ap("a")], after=["W"])]  # fmt: skip
    assert under(module(loop(body)), "dependencies").status is Status.OK


def test_a_count_that_no_reset_stops_is_stale_in_the_second_iteration() -> None:
    found = under(module(loop([WRITE, READ])), "semaphores")
    assert {(r.first.name, r.second.name) for r in found.races} == {("W", "R"), ("R", "W")}
    assert all(race.distance > 0 or race.second.iteration > 0 for race in found.races)
    fenced = [WRITE, READ, barrier("B0"), reset(5), barrier("B1")]
    assert under(module(loop(fenced)), "semaphores").status is Status.OK


def structured(trips: int, body: list[Any], **more: Any) -> Any:
    axis = {"name": "i", "lb": 0, "ub": trips, "stride": 1}
    return instruction(
        "for", "SP", opcode="Loop", LoopAxis=axis, blocks=[{"name": "body", "instructions": body}], **more
    )


@pytest.mark.parametrize(("trips", "pairs"), [(0, set()), (1, set()), (2, {("R", "W")}), (100, {("R", "W")})])
def test_a_structured_loop_runs_as_often_as_its_axis_says(trips: int, pairs: Pairs) -> None:
    body = [instruction("W", "DVE", writes=[ap("a")]), instruction("R", "Pool", reads=[ap("a")], after=["W"])]
    assert racing(under(module([structured(trips, body)]), "dependencies")) == pairs


@pytest.mark.parametrize(
    ("blocks", "kind"),
    [
        ({"A": [branch("SP", "A", "C")], "B": [], "C": []}, "forward-branch"),
        ({"A": [branch("SP", "A", "B"), branch("PE", "B", "B")], "B": []}, "divergent-branch"),
        ({"A": [instruction("W", "DVE"), branch("SP", "A", "B")], "B": []}, "divergent-branch"),
        ({"A": [branch("SP", "A", "B"), instruction("W", "SP")], "B": []}, "early-exit"),
        ({"A": [instruction("C", "SP", opcode="Call")]}, "call"),
        ({"A": [instruction("X", "SP", opcode="Exit")], "B": []}, "early-exit"),
        ({"A": [instruction("L", "SP", opcode="DoWhile", blocks=[{"name": "b", "instructions": []}])]}, "loop-bounds"),
        ({"A": [instruction("B", "PE", opcode="AllEngineBarrier")]}, "expanded-barrier"),
        ({"A": [instruction("W", "PE", loopnest=["i"])]}, "symbolic-instruction"),
        ({"A": [instruction("W", "PE", predicates=[{}])]}, "symbolic-instruction"),
    ],
)
def test_shapes_that_are_not_covered_are_refused_by_name(blocks: Any, kind: str) -> None:
    found = under(module(blocks), "dependencies")
    assert (found.status, refusals(found)) == (Status.UNSUPPORTED, {kind})


# ---- operands --------------------------------------------------------------------------------------------------------


def register(name: str) -> Any:
    return {"kind": "register_ap", "dtype": "float32", "memsetref": f"{name}_set", "regref": "r1", "ap": [[1, 4]]}


@pytest.mark.parametrize(("name", "kind"), [("a", "register-address"), ("p", "register-address")])
def test_a_register_address_on_chip_is_refused(name: str, kind: str) -> None:
    found = under(module([instruction("W", "DVE", writes=[register(name)])]), "dependencies")
    assert (found.status, refusals(found)) == (Status.UNSUPPORTED, {kind})


def test_a_register_address_in_dram_may_be_anywhere_in_its_tensor() -> None:
    one = instruction("W", "DVE", writes=[register("y")])
    other = instruction("S", "Pool", writes=[ap("y", [[1, 4]])])
    found = under(module([one, other]), "dependencies")
    assert (found.status, refusals(found), found.race_count) == (Status.UNSUPPORTED, {"runtime-address"}, 0)
    assert [(r.first.name, r.second.name) for r in found.possible] == [("W", "S")]
    assert under(module([one, other | {"dependencies": ["W"]}]), "dependencies").status is Status.OK
    apart = instruction("S", "Pool", writes=[ap("a")])
    assert under(module([one, apart]), "dependencies").status is Status.OK


def test_equal_addresses_known_at_run_time_are_no_excuse() -> None:
    dynamic = ap("a") | {"dynamic_ap_info": {"c": 0, "actual_ap": [[16, 4]]}}
    document = module([instruction("W", "DVE", writes=[dynamic]), instruction("S", "Pool", writes=[dynamic])])
    assert under(document, "dependencies").status is Status.UNSUPPORTED


def test_index_operands_of_a_gather_are_reads() -> None:
    document = module([instruction("W", "DVE", writes=[ap("a")]),
                       instruction("G", "Pool", opcode="Gather", writes=[ap("b")], indirection_ins=[ap("a")])])  # fmt: skip
    assert racing(under(document, "dependencies")) == {("W", "G")}


def test_an_unknown_kind_of_operand_is_refused() -> None:
    found = under(module([instruction("W", "DVE", ins=[{"kind": "brand_new"}])]), "dependencies")
    assert refusals(found) == {"unknown-operand"}


def test_tiles_of_different_quadrants_share_no_byte() -> None:
    upper = [*STANDARD, tensor(location("u", base=32))]
    body = [instruction("W", "DVE", writes=[ap("a")]), instruction("S", "Pool", writes=[ap("u")])]
    assert under(module(body, allocations=upper), "dependencies").status is Status.OK
    same = [*STANDARD, tensor(location("u", base=0))]
    assert racing(under(module(body, allocations=same), "dependencies")) == {("W", "S")}


def test_interleaved_columns_share_no_byte() -> None:
    even, odd = (ap("a", [[16, 4], [2, 8]], offset=column) for column in (0, 1))
    body = [instruction("W", "DVE", writes=[even]), instruction("S", "Pool", writes=[odd])]
    assert under(module(body), "dependencies").status is Status.OK


def aliased(addr: int) -> Any:
    one, other = location("d", "DRAM", addr=0, alias=[["e_set", "e", 3]]), location("e", "DRAM", addr=addr)
    body = [instruction("W", "DVE", writes=[ap("d", [[1, 4]])]), instruction("S", "Pool", writes=[ap("e", [[1, 4]])])]
    return module(body, allocations=[tensor(one), tensor(other)])


def test_aliases_that_addresses_do_not_show_are_refused() -> None:
    assert refusals(under(aliased(4096), "dependencies")) == {"dram-alias"}
    assert racing(under(aliased(0), "dependencies")) == {("W", "S")}


# ---- names and unknown synchronisation -------------------------------------------------------------------------------


def test_names_may_repeat_across_blocks() -> None:
    one = instruction("W", "DVE", writes=[ap("a")])
    document = module({"A": [one], "B": [one, instruction("R", "Pool", reads=[ap("a")], after=["W"])]})
    (program,) = lower_all(from_value(document))
    assert list(zip(program.dependencies.source.tolist(), program.dependencies.target.tolist(), strict=True)) == [
        (1, 2)
    ]


def test_a_name_with_two_meanings_in_one_block_is_refused() -> None:
    one = instruction("W", "DVE", writes=[ap("a")])
    found = under(module([one, one, instruction("R", "Pool", reads=[ap("a")], after=["W"])]), "dependencies")
    assert "ambiguous-dependency" in refusals(found)


@pytest.mark.parametrize(
    ("change", "kind", "order"),
    [
        ({"sync_info": {"on_wait": [{"id": 1, "wait_mode": "sem-ge-reg"}]}}, "unknown-sync", "semaphores"),
        ({"sync_info": {"on_update": [{"id": 1, "update_value": 1, "update_mode": "sem-dec"}]}}, "unknown-sync", "semaphores"),
        ({"sync_info": {"on_clear": []}}, "unknown-sync", "semaphores"),
        ({"dependencies": [["W", 7]]}, "edge-kind", "dependencies"),
        ({"is_reset_sema": True, "opcode": "Drain"}, "reset-group", "semaphores"),
    ],
)  # fmt: skip
def test_unknown_synchronisation_spoils_only_the_order_it_belongs_to(change: Any, kind: str, order: str) -> None:
    document = module([instruction("W", "DVE"), instruction("R", "Pool") | change])
    other = {"semaphores": "dependencies", "dependencies": "semaphores"}[order]
    assert (under(document, order).status, refusals(under(document, order))) == (Status.UNSUPPORTED, {kind})
    assert under(document, other).status is Status.OK


@pytest.mark.parametrize(
    ("body", "message"),
    [
        ([reader(after=["nobody"])], "R depends on 'nobody', which no instruction is called"),
        ([instruction("W", "DVE", writes=[ap("zz")])], "operand names location 'zz', which no allocation has"),
        ([trigger()], "T triggers 'B', which no queue of the module has"),
        ([branch("SP", "Nowhere", "Block1")], "J branches to 'Nowhere', which no block is called"),
    ],
)
def test_names_that_do_not_exist_are_input_errors(body: Any, message: str) -> None:
    with pytest.raises(InputError) as raised:
        lower_all(from_value(module(body)))
    assert message in str(raised.value)


def test_a_queue_that_does_not_exist_is_an_input_error() -> None:
    document = module([load("L", "a", queue="q")])
    document["queues"] = [{"name": "other", "blocks": []}]
    with pytest.raises(InputError, match="uses queue 'q', which the module does not have"):
        lower_all(from_value(document))


def test_source_lines_reach_the_report() -> None:
    document = module([instruction("W", "DVE", writes=[ap("a")], debug={"lineno": 12, "filename": "k.py", "op_name": "mul"}),
                       instruction("R", "Pool", reads=[ap("a")])])  # fmt: skip
    (race,) = under(document, "dependencies").races
    assert race.first.source == ("k.py", 12, "mul")


def test_a_document_is_not_changed_by_checking_it() -> None:
    document = json.loads((EXAMPLES / "racy.json").read_text())
    before = copy.deepcopy(document)
    program = lower(from_value(document), from_value(document).functions[0])
    check(program)
    assert document == before


# ---- where the compiler's own check is blind or vague ----------------------------------------------------------------


def symbolic(name: str) -> Any:
    return {
        "kind": "symbolic_ap",
        "dtype": "float32",
        "memsetref": f"{name}_set",
        "ap": [],
        "addrs": [{"kind": "AffIVKind"}],
    }


@pytest.mark.parametrize("name", ["a", "y"])
def test_a_symbolic_address_may_be_anywhere_in_its_set(name: str) -> None:
    one, other = instruction("W", "DVE", writes=[symbolic(name)]), instruction("S", "Pool", writes=[symbolic(name)])
    found = under(module([one, other]), "dependencies")
    assert (found.status, refusals(found)) == (Status.UNSUPPORTED, {"runtime-address"})
    assert under(module([one, other | {"dependencies": ["W"]}]), "dependencies").status is Status.OK


def test_one_address_known_at_run_time_meets_every_fixed_one_of_its_location() -> None:
    dynamic = ap("a", [[16, 1], [1, 1]]) | {"dynamic_ap_info": {"c": 0}}
    fixed = ap("a", [[16, 1], [1, 1]], offset=63)
    found = under(
        module([instruction("W", "DVE", writes=[dynamic]), instruction("R", "PE", reads=[fixed])]), "dependencies"
    )
    assert [(r.first.name, r.second.name) for r in found.possible] == [("W", "R")]


def test_interleaved_partitions_share_no_byte() -> None:
    even, odd = (ap("a", [[32, 2], [1, 16]], offset=16 * row) for row in (0, 1))
    body = [instruction("W", "DVE", writes=[even]), instruction("S", "Pool", writes=[odd])]
    assert under(module(body), "dependencies").status is Status.OK


def test_a_dependency_on_a_later_instruction_is_an_order_too() -> None:
    body = [instruction("R", "Pool", reads=[ap("a")], after=["W"]), instruction("W", "DVE", writes=[ap("a")])]
    assert under(module(body), "dependencies").status is Status.OK


def test_a_dependency_on_an_earlier_block_is_an_order_too() -> None:
    first, second = instruction("W", "DVE", writes=[ap("a")]), instruction("R", "Pool", reads=[ap("a")])
    assert racing(under(module({"A": [first], "B": [second]}), "dependencies")) == {("W", "R")}
    assert under(module({"A": [first], "B": [second | {"dependencies": ["W"]}]}), "dependencies").status is Status.OK


def test_accumulating_into_one_tensor_is_no_proof_unless_ordered() -> None:
    def accumulate(name: str, engine: str, **more: Any) -> Any:
        target = [ap("y", [[1, 4]])]
        return instruction(name, engine, opcode="IndirectSaveAccumulate", reads=[ap("a")], writes=target, **more)

    unordered = under(module([accumulate("A", "Pool"), accumulate("B", "Activation")]), "dependencies")
    assert [(r.first.name, r.second.name) for r in unordered.possible] == [("A", "B")]
    ordered = [accumulate("A", "Pool"), accumulate("B", "Activation", after=["A"])]
    assert under(module(ordered), "dependencies").status is Status.OK


@pytest.mark.parametrize("kind", ["Input", "Output", "RNGSTATE", "REG", "DRAM"])
def test_memory_of_every_type_is_compared(kind: str) -> None:
    allocations = [tensor(location("m", kind, dims=[64]))]
    body = [instruction(name, engine, writes=[ap("m", [[1, 4]])]) for name, engine in (("W", "DVE"), ("S", "Pool"))]
    assert racing(under(module(body, allocations=allocations), "dependencies")) == {("W", "S")}


def test_a_dependency_without_a_wait_and_a_wait_for_something_else() -> None:
    """The dependencies order W and R; the semaphores do not, and the checker says so."""
    body = [
        instruction("W", "DVE", writes=[ap("a")], updates=[(5, 1)]),
        instruction("R", "Pool", reads=[ap("a")], after=["W"]),
    ]
    found = verdict(module(body))
    assert {one.order: one.status for one in found.orders} == {"dependencies": Status.OK, "semaphores": Status.RACES}
    assert "missing-wait" in {one.kind for one in found.disagreements}


def test_index_operands_make_the_other_operands_reach_anywhere() -> None:
    """A gather of `a` by indices in `p` may read any byte of `a`, whatever its pattern says."""
    gather = instruction("G", "Pool", opcode="Gather", reads=[ap("a", [[16, 1], [1, 1]])], indirection_ins=[ap("p")])
    write = instruction("W", "DVE", writes=[ap("a", [[16, 1], [1, 1]], offset=63)])
    found = under(module([gather, write]), "dependencies")
    assert (found.status, [(r.first.name, r.second.name) for r in found.possible]) == (Status.UNSUPPORTED, [("G", "W")])
    assert under(module([gather, write | {"dependencies": ["G"]}]), "dependencies").status is Status.OK


@pytest.mark.parametrize(("opcode", "kind"), [("InlineASMBytes", "opaque-instruction"), ("Teleport", "unknown-opcode")])
def test_work_that_is_not_known_is_refused(opcode: str, kind: str) -> None:
    found = under(module([instruction("W", "DVE", opcode=opcode, writes=[ap("a")])]), "dependencies")
    assert (found.status, refusals(found)) == (Status.UNSUPPORTED, {kind})


def test_locations_that_share_a_name_are_refused() -> None:
    twice = [tensor(location("m")), tensor(location("m", addr=64)) | {"name": "other_set"}]
    found = under(module([instruction("W", "DVE", writes=[ap("m")])], allocations=twice), "dependencies")
    assert (found.status, refusals(found)) == (Status.UNSUPPORTED, {"ambiguous-name"})


@pytest.mark.parametrize(("queue", "expected"), [("q", {("B", "R")}), ("r", set())])
def test_a_trigger_means_the_block_of_its_own_queue(queue: str, expected: Pairs) -> None:
    def block(target: str) -> Any:
        descriptor = instruction("D", "DMA", opcode="DMADescriptorCopy", writes=[ap(target)])
        return instruction("B", "DMA", opcode="DMABlock", blocks=[{"name": "body", "instructions": [descriptor]}])

    queues = [
        {"name": name, "blocks": [{"instructions": [block(target)]}]} for name, target in (("q", "a"), ("r", "p"))
    ]
    start = instruction("T", "Pool", opcode="DMATrigger", queue=queue, dma_blocks=["B"])
    assert racing(under(module([start, reader()], queues=queues), "dependencies")) == expected
    nowhere = start | {"queue": "s"}
    found = under(module([nowhere, reader()], queues=[*queues, {"name": "s", "blocks": []}]), "dependencies")
    assert refusals(found) == {"ambiguous-name"}
