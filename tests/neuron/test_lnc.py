"""Races between cores: shared memory, barriers of every placement, exchanges of on-chip memory."""

from __future__ import annotations

import random
from itertools import product
from typing import Any

import pytest
from bir_documents import STANDARD, ap, instruction, load, location, module, tensor

from racefree.neuron.lnc import CoreVerdict, check_cores
from racefree.neuron.reading import from_value
from racefree.report.addresses import arithmetic
from racefree.verdict import Status

SHARED = [*STANDARD, tensor(location("s", "DRAM", addr=4096), addr_space="Shared"),
          tensor(location("own", "DRAM", addr=8192), addr_space="Local")]  # fmt: skip


def barrier(number: int, engine: str = "ALL") -> Any:
    return instruction(f"CB{number}", engine, opcode="CoreBarrier", id=number)


def write(name: str, target: str = "s", *, engine: str = "DVE", **more: Any) -> Any:
    return instruction(name, engine, writes=[ap(target, [[1, 16]])], **more)


def read(name: str, source: str = "s", *, engine: str = "DVE", **more: Any) -> Any:
    return instruction(name, engine, reads=[ap(source, [[1, 16]])], **more)


def verdict(*cores: Any, order: str = "dependencies", allocations: Any = None, **options: Any) -> CoreVerdict:
    modules = [
        from_value(module(body, core=number, allocations=allocations or SHARED)) for number, body in enumerate(cores)
    ]
    (found,) = check_cores(modules, order=order, **options)
    return found


def racing(found: CoreVerdict) -> set[tuple[str, str]]:
    return {(race.first.name, race.second.name) for race in found.races}


def test_nothing_between_two_cores() -> None:
    found = verdict([write("W")], [read("R")])
    assert (found.status, racing(found)) == (Status.RACES, {("W", "R")})
    assert [(race.race_type, race.first.core, race.second.core) for race in found.races] == [("RAW", 0, 1)]


def test_a_race_says_how_both_cores_come_to_the_byte() -> None:
    later = instruction("R", "DVE", reads=[ap("s", [[2, 4]], offset=9)])
    (race,) = verdict([write("W")], [later]).races
    sides = [arithmetic(side.reached_byte, side.reached_partition) for side in (race.first, race.second)]
    assert sides == ["byte 4096 + i*4 + b = 4096 + 9*4 + 0 = 4132 (i < 16, b < 4)",
                     "byte 4132 + i*8 + b = 4132 + 0*8 + 0 = 4132 (i < 4, b < 4)"]  # fmt: skip


def test_a_race_on_chip_has_a_partition_too() -> None:
    (race,) = verdict([exchange("X")], [read("R", "b")], allocations=REMOTE).races
    for side in (race.first, race.second):
        assert side.reached_partition
        assert side.reached_byte
        assert arithmetic(side.reached_byte, side.reached_partition).startswith("partition ")


def test_a_barrier_between_them() -> None:
    assert verdict([write("W"), barrier(0)], [barrier(0), read("R")]).status is Status.OK


@pytest.mark.parametrize("engine", ["ALL", "DVE"])
def test_every_placement_around_two_barriers(engine: str) -> None:
    """An access before barrier 0 is not separated from one that follows no barrier: no default index may hide that."""
    for mine, theirs in product(range(3), repeat=2):
        bodies = []
        for place, access in ((mine, write("W")), (theirs, read("R"))):
            body = [barrier(0, engine), barrier(1, engine)]
            body.insert(place, access)
            bodies.append(body)
        found = verdict(*bodies)
        assert found.status is (Status.RACES if mine == theirs else Status.OK), (mine, theirs)


def test_a_barrier_on_another_engine_separates_nothing() -> None:
    found = verdict([write("W"), barrier(0, "PE")], [barrier(0, "PE"), read("R")])
    assert racing(found) == {("W", "R")}


def test_a_barrier_on_one_engine_separates_what_is_ordered_with_that_engine() -> None:
    first = [write("W"), instruction("E", "PE", after=["W"]), barrier(0, "PE")]
    second = [barrier(0, "PE"), instruction("E", "PE"), read("R", after=["E"])]
    assert verdict(first, second).status is Status.OK


def test_a_transfer_is_before_a_barrier_only_when_its_completion_is() -> None:
    store = load("W", "a") | {"outs": [ap("s", [[1, 16]])]}
    assert racing(verdict([store, barrier(0)], [barrier(0), read("R")])) == {("W", "R")}
    awaited = [store, instruction("E", "SP", after=["W"]), barrier(0)]
    assert verdict(awaited, [barrier(0), read("R")]).status is Status.OK


def test_semaphores_order_too() -> None:
    store = load("W", "a", updates=[(3, 16)]) | {"outs": [ap("s", [[1, 16]])]}
    waited = [store, instruction("E", "SP", waits=[("W", 3, 16)]), barrier(0)]
    second = [barrier(0), read("R")]
    assert verdict(waited, second, order="semaphores").status is Status.OK
    assert verdict(waited, second, order="dependencies").status is Status.RACES


def test_memory_of_one_core_is_not_shared() -> None:
    assert verdict([write("W", "own")], [read("R", "own")]).status is Status.OK
    assert verdict([write("W", "a")], [read("R", "a")]).status is Status.OK


def test_external_tensors_are_shared_by_name() -> None:
    assert racing(verdict([write("W", "y")], [read("R", "y")])) == {("W", "R")}
    assert verdict([write("W", "y")], [read("R", "x")]).status is Status.OK


def test_disjoint_parts_of_one_tensor() -> None:
    second = instruction("R", "DVE", reads=[ap("s", [[1, 16]], offset=16)])
    assert verdict([write("W")], [second]).status is Status.OK


def test_two_sets_at_one_address_race_although_the_compiler_does_not_compare_them() -> None:
    other = tensor(location("t", "DRAM", addr=4096), addr_space="Shared")
    cores = [write("W")], [read("R", "t")]
    assert racing(verdict(*cores, allocations=[*SHARED, other])) == {("W", "R")}
    assert verdict(*cores, allocations=[*SHARED, other], compiler_rules=True).status is Status.OK


REMOTE = [*SHARED, tensor(location("far", addr=999, remote_local_target="b"))]


def exchange(name: str, source: str = "a", target: str = "far", **more: Any) -> Any:
    return instruction(name, "Pool", opcode="GPSIMDSB2SB", reads=[ap(source)], writes=[ap(target)], **more)


def test_writing_into_the_other_cores_memory() -> None:
    assert racing(verdict([exchange("X")], [read("R", "b")], allocations=REMOTE)) == {("X", "R")}
    assert verdict([exchange("X")], [read("R", "a")], allocations=REMOTE).status is Status.OK
    assert verdict([exchange("X"), barrier(0)], [barrier(0), read("R", "b")], allocations=REMOTE).status is Status.OK


def test_a_symbolic_address_on_chip_meets_what_the_other_core_writes_there() -> None:
    symbolic = {"kind": "symbolic_ap", "dtype": "float32", "memsetref": "b_set", "ap": [], "addrs": []}
    found = verdict([exchange("X")], [instruction("R", "DVE", reads=[symbolic])], allocations=REMOTE)
    assert {refusal.kind for refusal in found.refusals} == {"possible-core-race"}


def test_an_exchange_that_overlaps_itself_is_refused() -> None:
    cores = [exchange("X", source="b")], [exchange("X", source="b")]
    found = verdict(*cores, allocations=REMOTE)
    assert (found.status, {refusal.kind for refusal in found.refusals}) == (Status.UNSUPPORTED, {"core-exchange"})
    assert verdict(*cores, allocations=REMOTE, compiler_rules=True).status is Status.OK


def test_which_other_core_must_be_clear() -> None:
    found = verdict([exchange("X")], [], [], allocations=REMOTE)
    assert {refusal.kind for refusal in found.refusals} == {"remote-core"}


@pytest.mark.parametrize(
    ("first", "second", "kind"),
    [
        ([barrier(0)], [], "core-barriers"),
        ([barrier(0)], [barrier(0, "PE")], "core-barriers"),
        ([instruction("W", "DVE", outs=[{"kind": "brand_new"}])], [], "unknown-operand"),
    ],
)
def test_what_cannot_be_told_is_refused(first: list[Any], second: list[Any], kind: str) -> None:
    found = verdict(first, second)
    assert (found.status, {refusal.kind for refusal in found.refusals}) == (Status.UNSUPPORTED, {kind})


def test_an_address_known_at_run_time_is_no_race_and_no_proof() -> None:
    dynamic = ap("s", [[1, 16]]) | {"dynamic_ap_info": {"c": 1}}
    found = verdict([instruction("W", "DVE", writes=[dynamic])], [read("R")])
    assert (found.status, {refusal.kind for refusal in found.refusals}) == (Status.UNSUPPORTED, {"possible-core-race"})


def test_a_gather_from_shared_memory_may_read_any_of_it() -> None:
    gather = instruction("G", "Pool", opcode="Gather", reads=[ap("s", [[1, 1]])], indirection_ins=[ap("a")])
    far = instruction("W", "DVE", writes=[ap("s", [[1, 1]], offset=63)])
    assert {refusal.kind for refusal in verdict([gather], [far]).refusals} == {"possible-core-race"}
    assert verdict([gather, barrier(0)], [barrier(0), far]).status is Status.OK


def test_a_barrier_in_a_loop_is_refused() -> None:
    branch = instruction("J", "ALL", opcode="CompareAndBranch", on_true="Body", on_false="Exit")
    modules = [
        from_value(module({"Body": [barrier(0), branch], "Exit": []}, core=number, allocations=SHARED))
        for number in (0, 1)
    ]
    (found,) = check_cores(modules)
    assert {refusal.kind for refusal in found.refusals} == {"barrier-in-loop"}


@pytest.mark.parametrize("seed", range(40))
def test_random_cores_against_a_graph_of_both(seed: int) -> None:
    """Bands must answer what reachability in one graph of both cores answers."""
    rng = random.Random(seed)
    bodies: list[list[Any]] = []
    barriers = rng.randrange(0, 4)
    engines = ("DVE", "Pool", "PE")
    for core in range(2):
        body: list[Any] = []
        for number in range(barriers + 1):
            for _ in range(rng.randrange(0, 4)):
                name, engine = f"i{core}.{len(body)}", rng.choice(engines)
                after = [rng.choice(body)["name"]] if body and rng.random() < 0.5 else []
                after = [one for one in after if not one.startswith("CB")]
                make = rng.choice((read, write))
                body.append(make(name, engine=engine, after=after))
            if number < barriers:
                body.append(barrier(number, "ALL" if seed % 2 else "PE"))
        bodies.append(body)
    assert racing(verdict(*bodies)) == _expected(bodies)


def _expected(bodies: list[list[Any]]) -> set[tuple[str, str]]:
    edges: dict[str, set[str]] = {}

    def edge(source: str, target: str) -> None:
        edges.setdefault(source, set()).add(target)

    for core, body in enumerate(bodies):
        last: dict[str, str] = {}
        for one in body:
            names = ("DVE", "Pool", "PE", "Activation", "SP") if one["engine"] == "ALL" else (one["engine"],)
            for engine in names:
                start = f"{core}:{one['name']}:{engine}"
                done = f"{start}:done" if one["opcode"] == "CoreBarrier" else start
                if engine in last:
                    edge(last[engine], start)
                if one["opcode"] == "CoreBarrier":
                    edge(start, f"meet {one['name']}")
                    edge(f"meet {one['name']}", done)
                for source in one.get("dependencies", []):
                    edge(next(f"{core}:{x['name']}:{x['engine']}" for x in body if x["name"] == source), start)
                last[engine] = done
    found = set()
    for mine, theirs in product(bodies[0], bodies[1]):
        if "CB" in mine["name"] or "CB" in theirs["name"] or not (mine["outs"] or theirs["outs"]):
            continue
        here, there = f"0:{mine['name']}:{mine['engine']}", f"1:{theirs['name']}:{theirs['engine']}"
        if there not in _reached(edges, here) and here not in _reached(edges, there):
            found.add((mine["name"], theirs["name"]))
    return found


def _reached(edges: dict[str, set[str]], start: str) -> set[str]:
    seen: set[str] = set()
    stack = [start]
    while stack:
        for following in edges.get(stack.pop(), ()):
            if following not in seen:
                seen.add(following)
                stack.append(following)
    return seen
