"""Faults of this kind that were met in practice, made small, each with the wait or edge that mends it."""

from __future__ import annotations

from typing import Any

import pytest
from bir_documents import STANDARD, ap, instruction, load, location, module, tensor

from racefree.engines.check import check
from racefree.engines.records import EngineRace, OrderVerdict
from racefree.neuron.lowering import lower_all
from racefree.neuron.reading import from_value
from racefree.verdict import Status


def under(document: Any, order: str) -> OrderVerdict:
    (verdict,) = check(lower_all(from_value(document))[0], order=order).orders
    return verdict


def only_race(document: Any, order: str) -> EngineRace:
    (race,) = under(document, order).races
    return race


def sides(race: EngineRace) -> tuple[str, str, str]:
    return race.race_type, race.first.name, race.second.name


def fence(*semaphores: int) -> list[Any]:
    return [
        instruction("B0", "ALL", opcode="AllEngineBarrier"),
        instruction("Z", "ALL", opcode="GroupResetSemaphores", sema_group=list(semaphores)),
        instruction("B1", "ALL", opcode="AllEngineBarrier"),
    ]


def looped(body: list[Any]) -> Any:
    engines = sorted({one["engine"] for one in body} - {"ALL"})
    ends = [instruction("J", one, opcode="CompareAndBranch", on_true="Body", on_false="Exit") for one in engines]
    return module({"Body": body + ends, "Exit": []})


@pytest.mark.parametrize("kept", [True, False])
def test_a_wait_on_one_of_two_loads_is_dropped_inside_a_loop(kept: bool) -> None:
    """Two engines load the operands of a product; the product waits for both loads, or for the first alone."""
    waits = [("L", 16, 16), ("M", 32, 16)]
    product = instruction("P", "PE", opcode="Matmult", reads=[ap("a"), ap("b")], writes=[ap("p")],
                          waits=waits if kept else waits[:1], updates=[(3, 1)])  # fmt: skip
    body = [load("L", "a", updates=[(16, 16)]), load("M", "b", engine="Activation", queue="r", updates=[(32, 16)]), product,
            instruction("E", "Pool", waits=[*waits, ("P", 3, 1)][-2:], opcode="EventSemaphore"), *fence(3, 16, 32)]  # fmt: skip
    document = looped(body)
    if kept:
        assert under(document, "semaphores").status is Status.OK
    else:
        assert sides(only_race(document, "semaphores")) == ("RAW", "M", "P")


def test_two_tiles_with_different_names_overlap_physically() -> None:
    """A store still reads the packed tile while the vector engine overwrites its end under another name."""
    tiles = [
        tensor(location("packed", addr=1280, dims=[4, 8192])),
        tensor(location("other", addr=8192, dims=[4, 8192])),
    ]
    whole = [[2048, 4], [1, 2048]]
    body = [
        instruction("S", "SP", opcode="DMACopy", reads=[ap("packed", whole)], writes=[ap("y", [[1, 16]])], queue="q"),
        instruction("V", "DVE", writes=[ap("other", whole)]),
    ]
    race = only_race(module(body, allocations=STANDARD + tiles), "dependencies")
    assert sides(race) == ("WAR", "S", "V")
    assert (race.first.buffer, race.second.buffer) == ("packed", "other")
    assert race.byte is not None
    assert 8192 <= race.byte < 9472
    body[1]["dependencies"] = [["S", "Anti"]]
    assert under(module(body, allocations=STANDARD + tiles), "dependencies").status is Status.OK


def test_the_next_load_overtakes_the_transfer_that_reads_the_buffer() -> None:
    out = instruction(
        "S", "SP", opcode="DMACopy", reads=[ap("a")], writes=[ap("y", [[1, 64]])], queue="q", updates=[(1, 16)]
    )
    again = load("L", "a", engine="Activation", queue="r")
    assert sides(only_race(module([out, again]), "semaphores")) == ("WAR", "S", "L")
    waited = load("L", "a", engine="Activation", queue="r", waits=[("S", 1, 16)])
    assert under(module([out, waited]), "semaphores").status is Status.OK


def test_a_part_is_read_while_the_whole_is_still_written() -> None:
    part = instruction("R", "PE", reads=[ap("a", [[16, 2], [1, 3]], offset=21)])
    assert sides(only_race(module([load("W", "a"), part]), "dependencies")) == ("RAW", "W", "R")
    assert under(module([load("W", "a"), part | {"dependencies": ["W"]}]), "dependencies").status is Status.OK


def test_a_loop_reads_what_a_transfer_before_it_still_writes() -> None:
    reader = instruction("R", "PE", reads=[ap("a")])
    back = instruction("J", "PE", opcode="CompareAndBranch", on_true="Body", on_false="Exit")
    blocks = {"Before": [load("W", "a")], "Body": [reader, back], "Exit": []}
    assert sides(only_race(module(blocks), "dependencies")) == ("RAW", "W", "R")
    blocks["Body"][0] = reader | {"dependencies": ["W"]}
    assert under(module(blocks), "dependencies").status is Status.OK


def test_strided_accesses_whose_boxes_overlap_are_no_race() -> None:
    one = instruction("W", "DVE", writes=[ap("a", [[16, 4], [4, 4], [1, 2]])])
    other = instruction("S", "Pool", writes=[ap("a", [[16, 4], [4, 4], [1, 2]], offset=2)])
    assert under(module([one, other]), "dependencies").status is Status.OK
    touching = instruction("S", "Pool", writes=[ap("a", [[16, 4], [4, 3], [1, 3]], offset=2)])
    assert sides(only_race(module([one, touching]), "dependencies")) == ("WAW", "W", "S")
