"""The checks as compiler passes, and over files."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from bir_documents import STANDARD, ap, instruction, location, module, tensor

from racefree.errors import InputError, Refused
from racefree.neuron import passes
from racefree.neuron.check import CoreFile, check_files, logical_cores
from racefree.neuron.lowering import lower_all
from racefree.neuron.passes import BarrierRace, DataRace, IllegalModule, Options
from racefree.neuron.reading import from_value
from racefree.verdict import Status

EXAMPLES = Path(__file__).parents[2] / "examples" / "engine"
SHARED = [*STANDARD, tensor(location("s", "DRAM", addr=4096), addr_space="Shared")]


def example(name: str) -> Any:
    return from_value(json.loads((EXAMPLES / f"{name}.json").read_text()))


def test_the_registry() -> None:
    assert passes.names() == ("lnc_verifier", "lnc_barriercheck", "bir_racecheck")
    assert passes.enabled(Options()) == ()
    on = Options(enable_data_race_checker=True, enable_barrier_checker=True)
    assert [one.name for one in passes.enabled(on)] == ["lnc_barriercheck", "bir_racecheck"]
    with pytest.raises(InputError, match="unknown pass 'bir_verifier'"):
        passes.named("bir_verifier")


def test_flags() -> None:
    given = ["--enable-data-race-checker", "--enable-verifier=true", "--lnc-size=2", "--enable-barrier-checker=false"]
    assert Options.from_flags(given) == Options(enable_data_race_checker=True, enable_verifier=True, lnc_size=2)
    assert Options.from_flags([]) == Options()


@pytest.mark.parametrize(
    "flag", ["--enable-everything", "enable-verifier", "--lnc-size=two", "--enable-verifier=maybe"]
)
def test_bad_flags(flag: str) -> None:
    with pytest.raises(InputError, match=flag):
        Options.from_flags([flag])


@pytest.mark.parametrize("exemptions", [False, True])
@pytest.mark.parametrize("order", ["dependencies", "semaphores", "both"])
def test_the_race_check_raises_the_compilers_message(order: str, exemptions: bool) -> None:
    check = passes.named("bir_racecheck", Options(order=order, compiler_exemptions=exemptions))
    check.run(example("clean"))
    with pytest.raises(DataRace) as raised:
        check.run(example("racy"))
    assert str(raised.value) == "Data race detected:\nR: a By: I-1\nW: a By: I-3"


def test_a_check_that_cannot_tell_does_not_pass() -> None:
    unknown = from_value(module([instruction("W", "DVE", outs=[{"kind": "brand_new"}])]))
    with pytest.raises(Refused, match="unknown-operand"):
        passes.named("bir_racecheck").run(unknown)


def test_the_barrier_check() -> None:
    write = instruction("W", "DVE", writes=[ap("s", [[1, 16]])])
    read = instruction("R", "DVE", reads=[ap("s", [[1, 16]])])
    barrier = instruction("CB", "ALL", opcode="CoreBarrier", id=0)

    def cores(*bodies: Any) -> list[Any]:
        return [from_value(module(body, core=number, allocations=SHARED)) for number, body in enumerate(bodies)]

    check = passes.named("lnc_barriercheck")
    check.run(cores([write, barrier], [barrier, read]))
    check.run(example("racy"))
    with pytest.raises(BarrierRace) as raised:
        check.run(cores([write], [read]))
    assert str(raised.value) == "Core barrier missing:\nW: s By: W (core 0)\nR: s By: R (core 1)"
    with pytest.raises(Refused, match="core-barriers"):
        check.run(cores([barrier], []))


def test_the_verifier() -> None:
    passes.named("lnc_verifier").run(example("clean"))
    with pytest.raises(IllegalModule, match=r"\[1200\] sg0000: expected exactly one shard id symbol, found 0"):
        passes.named("lnc_verifier", Options(lnc_size=2)).run(example("clean"))
    barrier = instruction("CB", "ALL", opcode="CoreBarrier", id=0)
    unequal = [from_value(module([barrier])), from_value(module([], core=1))]
    with pytest.raises(IllegalModule, match=r"\[1187\]"):
        passes.named("lnc_verifier").run(unequal)


# ---- exemptions ------------------------------------------------------------------------------------------------------


def marked(*, source: str = "a", opcode: str = "TensorCopy", uninit: bool = True) -> Any:
    """W writes `a`; C, which may read uninitialised memory, reads `source` and writes `b`; S reads `b`. No order."""
    return module([
        instruction("W", "DVE", writes=[ap("a")]),
        instruction("C", "Pool", opcode=opcode, reads=[ap(source)], writes=[ap("b")], can_read_uninit=uninit),
        instruction("S", "PE", reads=[ap("b")], writes=[ap("p")]),
    ])  # fmt: skip


def outcome(tmp_path: Path, document: Any, **options: Any) -> Any:
    path = tmp_path / "d.json"
    path.write_text(json.dumps(document))
    ((program,),) = (one.programs for one in check_files([path], **options).files)
    return program.orders[0]


def names(races: Any) -> set[tuple[str, str]]:
    return {(race.first.name, race.second.name) for race in races}


def test_an_exemption_covers_reads_of_memory_nothing_has_written_and_nothing_else(tmp_path: Path) -> None:
    found = outcome(tmp_path, marked(), order="dependencies")
    assert names(found.races) == {("C", "S")}
    assert names(found.excused) == {("W", "C")}
    assert outcome(tmp_path, marked(uninit=False), order="dependencies").excused == ()


def test_the_compilers_rule_would_hide_what_it_hides(tmp_path: Path) -> None:
    (race,) = outcome(tmp_path, marked(), order="dependencies").races
    assert race.hidden_by
    assert names(outcome(tmp_path, marked(uninit=False), order="dependencies").races) == {("W", "C"), ("C", "S")}


def test_reads_of_memory_that_was_written_before_are_not_excused(tmp_path: Path) -> None:
    document = module([
        instruction("V", "Pool", writes=[ap("a")]),
        instruction("W", "DVE", writes=[ap("a")], after=["V"]),
        instruction("C", "Pool", reads=[ap("a")], writes=[ap("b")], can_read_uninit=True),
    ])  # fmt: skip
    assert names(outcome(tmp_path, document, order="dependencies").races) == {("W", "C")}


@pytest.mark.parametrize(
    ("document", "ours"),
    [
        (marked(), {("C", "S")}),
        (marked(opcode="GPSIMDSB2SB", uninit=False), {("W", "C"), ("C", "S")}),
        (module([instruction("W", "DVE", writes=[ap("y", [[1, 4]]) | {"dynamic_ap_info": {"c": 1}}]),
                 instruction("S", "PE", writes=[ap("y", [[1, 4]]) | {"dynamic_ap_info": {"c": 1}}])]), None),
        (module({"A": [instruction("W", "DVE", writes=[ap("a")])], "B": [instruction("S", "PE", writes=[ap("a")])]}),
         {("W", "S")}),
    ],
)  # fmt: skip
def test_compiler_exemptions_reproduce_its_blind_spots(tmp_path: Path, document: Any, ours: Any) -> None:
    theirs = outcome(tmp_path, document, compiler_exemptions=True)
    assert (theirs.status, theirs.races) == (Status.OK, ())
    found = outcome(tmp_path, document, order="dependencies")
    assert (names(found.races) or None) == ours
    assert found.status is (Status.RACES if ours else Status.UNSUPPORTED)


# ---- files -----------------------------------------------------------------------------------------------------------


def test_several_files_at_once() -> None:
    found = check_files([EXAMPLES / "clean.json", EXAMPLES / "racy.json"])
    assert [one.programs[0].status for one in found.files] == [Status.OK, Status.RACES]
    assert (found.status, found.cores) == (Status.RACES, ())


def test_files_of_one_logical_core_are_checked_together(tmp_path: Path) -> None:
    access = {
        0: instruction("W", "DVE", writes=[ap("s", [[1, 16]])]),
        1: instruction("R", "DVE", reads=[ap("s", [[1, 16]])]),
    }
    paths = []
    for core, one in access.items():
        folder = tmp_path / f"nc0{core}" / "sg00"
        folder.mkdir(parents=True)
        paths.append(folder / "bir_debug.json")
        paths[-1].write_text(json.dumps(module([one], core=core, allocations=SHARED)))
    found = check_files(reversed(paths))
    assert [one.programs[0].status for one in found.files] == [Status.OK, Status.OK]
    (together,) = found.cores
    assert together.paths == tuple(str(path) for path in paths)
    assert (together.status, found.status) == (Status.RACES, Status.RACES)
    assert {one.order for one in together.functions} == {"dependencies", "semaphores"}


def test_the_first_race_only() -> None:
    document = EXAMPLES / "racy.json"
    assert check_files([document], all_races=False, order="dependencies").files[0].programs[0].orders[0].race_count == 1


def test_no_program_is_vacuous(tmp_path: Path) -> None:
    (tmp_path / "d.json").write_text('{"functions": []}')
    assert check_files([tmp_path / "d.json"]).status is Status.VACUOUS


def test_instructions_are_counted_as_in_the_document() -> None:
    """The rows of a program may be more: a race points at rows, which is where its instructions are found again."""
    (program,) = check_files([EXAMPLES / "racy.json"]).files[0].programs
    assert program.instructions == 5
    (rows,) = lower_all(example("racy"))
    for order in program.orders:
        (race,) = order.races
        assert [rows.names[side.instruction] for side in (race.first, race.second)] == ["I-1", "I-3"]


def core_file(path: str, core: int | None, *functions: str) -> CoreFile:
    return CoreFile(Path(path), core, frozenset(functions or ("sg0000",)))


@pytest.mark.parametrize(
    ("files", "groups"),
    [
        ([core_file("d/nc01/a.json", 1), core_file("d/nc00/a.json", 0)], [[0, 1]]),
        ([core_file("d/a.json", 0), core_file("d/b.json", 1)], [[0, 1]]),
        ([core_file("d/a.json", 0), core_file("d/b.json", 0)], []),
        ([core_file("d/a.json", None), core_file("d/b.json", 1)], []),
        ([core_file("d/a.json", 0), core_file("e/b.json", 1)], []),
        ([core_file("d/a.json", 0, "f"), core_file("d/b.json", 1, "g")], []),
        ([core_file("d/nc0/a.json", 0), core_file("d/nc1/a.json", 1), core_file("e/nc0/a.json", 0)], [[0, 1]]),
    ],
)
def test_which_files_form_a_logical_core(files: list[CoreFile], groups: list[list[int]]) -> None:
    assert [[one.core for one in group] for group in logical_cores(files)] == groups
