"""Reading documents: every spelling gives the same records, and misfits are named by their path."""

from __future__ import annotations

import copy
import io
import json
from pathlib import Path
from typing import Any

import pytest
from bir_documents import ap, instruction, load, location, module, tensor

from racefree.errors import InputError
from racefree.neuron.document import (
    Alias,
    Dependency,
    EdgeKind,
    Immediate,
    MemoryType,
    PhysicalAp,
    RegisterAccess,
    RegisterAp,
    SymbolicAp,
    UnknownOperand,
    Update,
    Wait,
)
from racefree.neuron.reading import from_value, loads
from racefree.neuron.reading import load as load_file
from racefree.neuron.streams import JsonCursor

SAMPLE = module(
    [
        load("I-0", "a", updates=[(10, 16)]),
        instruction("I-1", "PE", opcode="Matmult", reads=[ap("a")], writes=[ap("p")], after=[["I-0", "Flow"]],
                    waits=[("I-0", 10, 16)], updates=[(3, 1)], debug={"lineno": 7, "op_name": "mm", "filename": "k.py"}),
    ]
)  # fmt: skip


def only(document: Any) -> Any:
    """The last instruction of the document's first block."""
    return from_value(document).functions[0].blocks[0].instructions[-1]


def with_last(**changes: Any) -> Any:
    document = copy.deepcopy(SAMPLE)
    document["functions"][0]["blocks"][0]["instructions"][-1] |= changes
    return document


def test_a_document_becomes_records() -> None:
    read = from_value(SAMPLE)
    assert (read.version, read.arch, read.core) == (2, "gen3", 0)
    second = read.functions[0].blocks[0].instructions[1]
    assert (second.name, second.opcode, second.engine) == ("I-1", "Matmult", "PE")
    assert second.ins == (PhysicalAp("a", "a_set", "float32", ((16, 4), (1, 16)), 0),)
    assert second.dependencies == (Dependency("I-0", EdgeKind.Flow),)
    assert second.sync.waits == (Wait("I-0", 10, 16),)
    assert second.sync.updates == (Update(3, 1),)
    assert (second.file, second.line, second.operation) == ("k.py", 7, "mm")


@pytest.mark.parametrize("chunk", [1, 7, 64, 1 << 20])
def test_text_in_pieces_of_any_size_reads_the_same(chunk: int) -> None:
    from racefree.neuron.reading import _read

    text = json.dumps(SAMPLE, indent=1)
    assert _read(JsonCursor(io.StringIO(text), "d", chunk_chars=chunk), "d") == from_value(SAMPLE)


@pytest.mark.parametrize("wrapped", [False, True])
@pytest.mark.parametrize("suffix", ["json", "cbor", "indefinite"])
def test_json_and_cbor_wrapped_or_not(tmp_path: Path, suffix: str, wrapped: bool) -> None:
    document = {"module": SAMPLE, "toolchain": {"functions": 1}} if wrapped else SAMPLE
    path = tmp_path / f"d.{suffix}"
    if suffix == "json":
        path.write_text(json.dumps(document), encoding="utf-8-sig")
    else:
        cbor2 = pytest.importorskip("cbor2")
        path.write_bytes(cbor2.dumps(document, indefinite_containers=suffix == "indefinite"))
    assert load_file(path) == from_value(SAMPLE)


def test_unknown_keys_are_ignored_everywhere() -> None:
    document = copy.deepcopy(SAMPLE)

    def decorate(value: Any) -> None:
        if isinstance(value, dict):
            for part in list(value.values()):
                decorate(part)
            if not value.keys() & {"on_wait", "on_update", "wait_value", "update_value"}:
                value["later_key"] = {"nested": [1, {"kind": "?"}]}
        elif isinstance(value, list):
            for part in value:
                decorate(part)

    decorate(document["functions"])
    document["later_key"] = [[]]
    assert from_value(document) == from_value(SAMPLE)


def test_old_names_of_function_members() -> None:
    document = copy.deepcopy(SAMPLE)
    function = document["functions"][0]
    function["storages"] = function.pop("allocations")
    function["basic_blocks"] = function.pop("blocks")
    assert from_value(document) == from_value(SAMPLE)


@pytest.mark.parametrize(
    ("written", "expected"),
    [
        (["I-0", "Anti"], Dependency("I-0", EdgeKind.Anti)),
        ("I-0", Dependency("I-0", EdgeKind.Flow)),
        (["I-0", 3], Dependency("I-0", EdgeKind.Output)),
        (["I-0", 6], Dependency("I-0", EdgeKind.Invalid)),
        ({"id": "I-0", "kind": "Ordered"}, Dependency("I-0", EdgeKind.Ordered)),
        (["I-0", "Flow", [1, 2]], Dependency("I-0", EdgeKind.Flow, (1, 2))),
    ],
)
def test_spellings_of_a_dependency(written: Any, expected: Dependency) -> None:
    assert only(with_last(dependencies=[written])).dependencies == (expected,)
    assert only(with_last(loop_carried_dependencies=[written])).loop_carried == (expected,)


@pytest.mark.parametrize(
    ("written", "expected"),
    [
        ({"kind": "imm_value", "dtype": "float32", "value": "inf"}, Immediate("imm_value")),
        ({"kind": "imm_array", "dtype": "float32", "value_array": [1]}, Immediate("imm_array")),
        ({"kind": "symbolic_imm_value", "dtype": "int32", "value_list": [], "expr": {}}, Immediate("symbolic_imm_value")),
        ({"kind": "register_access", "dtype": "int32", "regref": "r1"}, RegisterAccess("r1")),
        ({"kind": "register_ap", "dtype": "int32", "memsetref": "x_set", "regref": "r1", "ap": [[1, 4]]},
         RegisterAp("x_set", "int32", "r1")),
        ({"kind": "symbolic_ap", "dtype": "int8", "memsetref": "x_set", "ap": [], "addrs": []}, SymbolicAp("x_set", "int8")),
        ({"kind": "symbolic_pwap", "dtype": "int8", "memsetref": "x_set"}, SymbolicAp("x_set", "int8")),
        ({"kind": "brand_new"}, UnknownOperand("brand_new")),
        (ap("a", offset=0) | {"offset": {"kind": "AffExprKind", "terms": [], "c": 5}},
         PhysicalAp("a", "a_set", "float32", ((16, 4), (1, 16)), 5)),
        (ap("a") | {"offset": {"terms": [{"AxisLabel": "i", "coef": 2}], "c": 1}},
         PhysicalAp("a", "a_set", "float32", ((16, 4), (1, 16)), None)),
        (ap("a") | {"dynamic_ap_info": {"c": 0, "actual_ap": []}},
         PhysicalAp("a", "a_set", "float32", ((16, 4), (1, 16)), 0, '{"actual_ap": [], "c": 0}')),
    ],
)  # fmt: skip
def test_kinds_of_operand(written: Any, expected: Any) -> None:
    assert only(with_last(indirection_ins=[written])).indirections == (expected,)


@pytest.mark.parametrize(
    ("key", "value", "odd"),
    [
        ("wait_mode", "sem-ge-imm", ""),
        ("type", "semaphore", ""),
        ("wait_mode", "sem-ge-reg", "wait_mode 'sem-ge-reg'"),
        ("type", "event", "type 'event'"),
        ("threshold_register", "r1", "key 'threshold_register'"),
    ],
)
def test_modes_of_a_wait(key: str, value: str, odd: str) -> None:
    wait = {"from": "I-0", "id": 10, "wait_value": 16, key: value}
    assert only(with_last(sync_info={"on_wait": [wait]})).sync.waits == (Wait("I-0", 10, 16, odd),)


@pytest.mark.parametrize(
    ("written", "expected"),
    [
        ({"id": 1, "update_value": 4, "update_mode": "sem-add-imm"}, Update(1, 4)),
        ({"id": 1, "update_mode": "sem-inc"}, Update(1, 1)),
        ({"id": 1, "update_value": 4, "update_mode": "sem-wr-imm"}, Update(1, 4, "update_mode 'sem-wr-imm'")),
        ({"id": 1, "update_value": 4, "target_core": 1}, Update(1, 4, "key 'target_core'")),
    ],
)
def test_modes_of_an_update(written: Any, expected: Update) -> None:
    assert only(with_last(sync_info={"on_update": [written]})).sync.updates == (expected,)


@pytest.mark.parametrize("empty", [None, {}])
def test_no_sync_info(empty: Any) -> None:
    assert only(with_last(sync_info=empty)).sync.waits == ()


def test_locations_in_both_spellings() -> None:
    entry = location(
        "d", 8, base=None, alias=[["s", "e", 3], ["f", 1]], pointer_ref_memloc="g", is_shared_post_dram_alloc=1
    )
    read = from_value(module([], allocations=[tensor(entry)])).functions[0].allocations[0].locations[0]
    assert (read.type, read.base, read.alias) == (MemoryType.DRAM, 0, (Alias("e", True), Alias("f", False)))
    assert (read.pointer_to, read.shared) == ("g", True)
    named = from_value(module([], allocations=[tensor(location("d", "DRAM"))]))
    assert named.functions[0].allocations[0].locations[0].type is MemoryType.DRAM


def test_equal_operands_are_one_object() -> None:
    document = module([instruction(f"I-{i}", "PE", reads=[ap("a")]) for i in range(2)])
    first, second = from_value(document).functions[0].blocks[0].instructions
    assert first.ins[0] is second.ins[0]


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"name": None}, "$.functions[0].blocks[0].instructions[1].name: expected a string, found None"),
        ({"opcode": 3}, "instructions[1].opcode: expected a string, found 3"),
        ({"ins": {}}, "instructions[1].ins: expected an array, found {}"),
        ({"ins": [{"kind": "physical_ap"}]}, "instructions[1].ins[0].ap: expected at least one [step, num] pair"),
        ({"ins": [ap("a", [[1, 0]])]}, "instructions[1].ins[0].ap[0]: expected [step, num] with num at least 1, found [1, 0]"),
        ({"ins": [ap("a", dtype="float7")]}, "instructions[1].ins[0].dtype: expected a dtype ("),
        ({"ins": [ap("a") | {"offset": "here"}]}, "instructions[1].ins[0].offset: expected an integer or an expression"),
        ({"dependencies": "I-0"}, "instructions[1].dependencies: expected an array, found 'I-0'"),
        ({"dependencies": [["I-0", "Sideways"]]}, "instructions[1].dependencies[0]: expected an edge kind"),
        ({"sync_info": {"on_wait": [{"id": "ten"}]}}, "instructions[1].sync_info.on_wait[0].id: expected an integer"),
        ({"sync_info": {"on_update": [{"id": 1}]}},
         "instructions[1].sync_info.on_update[0].update_value: expected an integer, found 'nothing'"),
    ],
)  # fmt: skip
def test_misfits_are_named_by_their_path(changes: Any, message: str) -> None:
    with pytest.raises(InputError) as raised:
        from_value(with_last(**changes), "d.json")
    assert message in str(raised.value)
    assert str(raised.value).startswith("d.json: $.")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "expected more JSON, but the document ends here"),
        ("[]", "$: expected a BIR module (an object), found []"),
        ("{}", "$: expected a BIR module: an object with the key 'functions'"),
        ('{"functions": 3}', "$.functions: expected an array, found 3"),
        ('{"functions": [{"blocks": []}]}', "$.functions[0].name: expected a string, found nothing"),
        ('{"functions": [], "functions": []}', "expected each key once, found 'functions' twice"),
        ('{"functions": [}', "character 15"),
        ('{"functions": []} x', "expected the end of the document, but found 'x'"),
        ('{"functions": [], "version": ' + "9" * 5000 + "}", "this has too many digits"),
        ('{"functions": [], "version": 3}', "$.version: expected version 1 or 2, found 3"),
        ('{"functions": [{"name": "f", "allocations": [{"name": "s", "memorylocations": [{"name": "m", "type": "L3"}]}]}]}',
         "$.functions[0].allocations[0].memorylocations[0].type: expected a memory type ("),
    ],
)  # fmt: skip
def test_broken_documents(text: str, message: str) -> None:
    with pytest.raises(InputError) as raised:
        loads(text)
    assert message in str(raised.value)


def test_files_that_cannot_be_read(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="No such file"):
        load_file(tmp_path / "missing.json")
    (tmp_path / "latin.json").write_bytes(b'{"functions": ["\xff"]}')
    with pytest.raises(InputError, match="not UTF-8"):
        load_file(tmp_path / "latin.json")
    pytest.importorskip("cbor2")
    (tmp_path / "short.cbor").write_bytes(b"\xa1\x69functions")
    with pytest.raises(InputError, match="CBOR document ends too early"):
        load_file(tmp_path / "short.cbor")


def test_a_deeply_nested_document_is_an_input_error() -> None:
    with pytest.raises(InputError):
        loads('{"x": ' + "[" * 200_000)


def test_the_window_does_not_grow_with_the_document() -> None:
    instructions = [load(f"I-{i}", "a") for i in range(3000)]
    cursor = JsonCursor(io.StringIO(json.dumps(module(instructions))), "d", chunk_chars=4096)
    from racefree.neuron.reading import _read

    widest = 0
    decode = cursor.value

    def value() -> Any:
        nonlocal widest
        widest = max(widest, len(cursor._window))
        return decode()

    cursor.value = value  # type: ignore[method-assign]
    assert len(_read(cursor, "d").functions[0].blocks[0].instructions) == 3000
    assert widest < 20_000


@pytest.mark.parametrize("chunk", [64, 4096])
def test_an_error_is_told_where_it_stands_without_reading_on(chunk: int) -> None:
    from racefree.neuron.reading import _read

    text = json.dumps(module([load(f"I-{i}", "a") for i in range(500)]))
    at = text.index('"I-40"') - 2
    stream = io.StringIO(text[:at] + "!" + text[at:])
    with pytest.raises(InputError) as raised:
        _read(JsonCursor(stream, "d", chunk_chars=chunk), "d")
    assert f"character {at}: " in str(raised.value)
    assert stream.tell() < len(text) // 2


def test_words_and_escapes_may_be_cut_anywhere() -> None:
    from racefree.neuron.reading import _read

    document = SAMPLE | {"later": [True, False, None, -12.5e-3, '\u00e9\\"', float("-inf")]}
    text = json.dumps(document)
    for chunk in range(1, 40):
        assert _read(JsonCursor(io.StringIO(text), "d", chunk_chars=chunk), "d") == from_value(SAMPLE)
