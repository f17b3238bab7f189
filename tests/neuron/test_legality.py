"""The sixteen structural rules: a pair of cores that keeps them all, and one change that breaks each."""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Any

import pytest
from bir_documents import STANDARD, ap, instruction, location, module, tensor

from racefree.errors import Refused
from racefree.neuron import legality
from racefree.neuron.reading import from_value

Edit = Callable[[Any], None]

SHARD = {"kind": "ShardIDKind", "ub": 2}


def barrier(number: int, **more: Any) -> Any:
    return instruction(f"CB{number}", "ALL", opcode="CoreBarrier", id=number, **more)


def exchange(**more: Any) -> Any:
    return instruction("X", "Pool", opcode="GPSIMDSB2SB", **more)


def core(number: int) -> Any:
    shared = location(
        "s", "DRAM", addr=256, is_shared_post_dram_alloc=True, remote_local_target="s" if number else None
    )
    body = {"Block1": [barrier(0), exchange()], "Block2": [barrier(1)]}
    return module(body, allocations=[*STANDARD, tensor(shared, addr_space="Shared")], core=number)


def broken(edit: Edit) -> list[tuple[int, int | None]]:
    """Codes and cores of the rules that two cores break once `edit` has changed core 1."""
    cores = [core(0), core(1)]
    edit(cores[1])
    return [(one.code, one.core) for one in legality.verify_split([from_value(one) for one in cores])]


def function(document: Any) -> Any:
    return document["functions"][0]


def shared(document: Any) -> Any:
    return function(document)["allocations"][-1]["memorylocations"][0]


def test_two_cores_that_keep_every_rule() -> None:
    assert broken(lambda document: None) == []


def no_core_id(document: Any) -> None:
    document["attributes"] = {}


def symbolic_shard(document: Any) -> None:
    operand = ap("a") | {"offset": {"kind": "SumKind", "n_terms": 1, "terms": [SHARD]}}
    function(document)["blocks"][0]["instructions"].append(instruction("S", "PE", reads=[operand]))


def another_function(document: Any) -> None:
    document["functions"].append(copy.deepcopy(function(document)) | {"name": "other"})


def renamed_function(document: Any) -> None:
    function(document)["name"] = "other"


def another_block(document: Any) -> None:
    function(document)["blocks"].append({"name": "Block3", "instructions": []})


def renamed_block(document: Any) -> None:
    function(document)["blocks"][1]["name"] = "Tail"


def another_barrier(document: Any) -> None:
    function(document)["blocks"][1]["instructions"].append(barrier(2))


def another_exchange(document: Any) -> None:
    function(document)["blocks"][1]["instructions"].append(exchange())


def wrong_barrier_id(document: Any) -> None:
    function(document)["blocks"][1]["instructions"][0]["id"] = 5


def renamed_barrier(document: Any) -> None:
    function(document)["blocks"][1]["instructions"][0]["name"] = "CBx"


def no_target(document: Any) -> None:
    del shared(document)["remote_local_target"]


def missing_target(document: Any) -> None:
    shared(document)["remote_local_target"] = "nothing"


def moved_shared(document: Any) -> None:
    shared(document)["addr"] = 512


@pytest.mark.parametrize(
    ("edit", "codes"),
    [
        (no_core_id, [1203]),
        (symbolic_shard, [1199]),
        (another_function, [1193]),
        (renamed_function, [1191]),
        (another_block, [1192]),
        (renamed_block, [1194]),
        (another_barrier, [1187]),
        (another_exchange, [1198]),
        (wrong_barrier_id, [1188]),
        (renamed_barrier, [1189]),
        (no_target, [1197]),
        (missing_target, [1195]),
        (moved_shared, [1195, 1196]),
    ],
)
def test_each_rule_after_the_split(edit: Edit, codes: list[int]) -> None:
    assert broken(edit) == [(code, 1) for code in codes]


def before(instructions: list[Any], *, size: int = 2) -> list[int]:
    return [one.code for one in legality.verify_symbolic(from_value(module(instructions, core=None)), lnc_size=size)]


SHARDED = instruction("S", "PE", reads=[ap("a") | {"offset": SHARD}])


def test_a_symbolic_module_that_keeps_every_rule() -> None:
    assert before([SHARDED, barrier(0), barrier(1, cores=[0, 1]), barrier(2, cores=[]), exchange()]) == []


@pytest.mark.parametrize(
    ("instructions", "code"),
    [
        ([], 1200),
        ([SHARDED, SHARDED | {"predicates": [], "outs": [ap("b") | {"offset": SHARD | {"ub": 4}}]}], 1200),
        ([SHARDED, barrier(0, cores=[1])], 1201),
        ([SHARDED, exchange(cores=[0])], 1202),
    ],
)
def test_each_rule_before_the_split(instructions: list[Any], code: int) -> None:
    assert before(instructions) == [code]


def test_one_physical_core_has_no_rules() -> None:
    assert before([], size=1) == []
    assert legality.verify_split([from_value(core(0))]) == ()


def test_a_predicate_on_a_barrier_is_refused() -> None:
    with pytest.raises(Refused, match="core-predicate"):
        before([SHARDED, barrier(0, predicates=[{"kind": "?"}])])


def test_the_codes_are_all_there() -> None:
    codes = {value for name, value in vars(legality).items() if name.isupper() and isinstance(value, int)}
    assert codes == set(range(1187, 1204)) - {1190}
