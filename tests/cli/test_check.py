"""`racefree check` on scripts: what is said, and the exit status."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from cli_scripts import HEADER, Check, Write
from click.testing import CliRunner

from racefree import pictures
from racefree.cli import racefree_command

CLEAN = "fill[(4,)](torch.zeros(64, dtype=torch.int32, device='cuda'), 64, BLOCK=16, STEP=16)\n"
RACY = "fill[(4,)](torch.zeros(64, dtype=torch.int32, device='cuda'), 64, BLOCK=16, STEP=8)\n"


def summary(
    launches: int, *, races: int = 0, racing: int = 0, unanalysed: int = 0, vacuous: int = 0, proved: int = 0
) -> str:
    return (
        f"{launches} launches: {races} races in {racing}, {unanalysed} not analysed, {vacuous} vacuous, "
        f"{proved} proved race-free"
    )


def last_line(output: str) -> str:
    return output.rstrip("\n").splitlines()[-1]


def test_clean_script_exits_0(check: Check, script: Write) -> None:
    done = check("--verbose", script(CLEAN))
    assert last_line(done.stdout) == summary(1, proved=1)
    assert "ok fill proved race-free for " in done.stdout
    assert done.exit_code == 0


def test_race_shows_both_programs_and_the_source_line(check: Check, script: Write) -> None:
    path = script(RACY)
    done = check(path)
    assert f"{path}:9:5: RACE RF001 write-write between programs on out[" in done.stdout
    assert "  9 |     tl.store(out + offsets, tl.program_id(0), mask=offsets < n)  # line 9" in done.stdout
    assert "^^^^^^^^ store of out[" in done.stdout
    assert "by program (0, 0, 0)" in done.stdout
    assert "by program (1, 0, 0)" in done.stdout
    assert last_line(done.stdout) == summary(1, races=1, racing=1)
    assert done.exit_code == 1


def test_equal_launches_are_counted_and_told_once(check: Check, script: Write) -> None:
    body = """
    x = torch.zeros(64, dtype=torch.int32, device="cuda")
    for _ in range(3):
        fill[(4,)](x, 64, BLOCK=16, STEP=8)
    """
    done = check(script(body))
    assert done.stdout.count("RACE RF001") == 1
    assert last_line(done.stdout) == summary(3, races=1, racing=3)


def test_json_holds_the_records(check: Check, script: Write) -> None:
    done = check("--format", "json", script(RACY + "print('the script speaks')\n"))
    document = json.loads(done.stdout)
    (subject,) = document["value"]["subjects"]
    (race, *_) = subject["records"]["verdict"]["configs"][0]["races"]
    assert (document["kind"], document["schema"]) == ("racefree-report", 1)
    assert race["race_type"] == "WAW"
    assert race["first"]["source"][1:] == [9, "fill"]
    assert race["programs"][0] != race["programs"][1]
    assert "the script speaks" in done.stderr


def test_several_outputs_at_once(check: Check, script: Write, tmp_path: Path) -> None:
    done = check("--output", f"json={tmp_path}/r.json", "--output", f"concise={tmp_path}/r.txt", script(RACY))
    assert last_line(done.stdout) == summary(1, races=1, racing=1)
    assert json.loads((tmp_path / "r.json").read_text())["summary"]["races"] == 1
    assert "script.py:9:5: RF001" in (tmp_path / "r.txt").read_text()


def test_a_saved_report_keeps_the_maps_of_races(check: Check, script: Write, tmp_path: Path) -> None:
    saved = tmp_path / "r.json"
    check("--output", f"json={saved}", script(RACY + CLEAN))
    maps = [subject["records"]["maps"] for subject in json.loads(saved.read_text())["value"]["subjects"]]
    assert [[tensor["tensor"] for tensor in each] for each in maps] == [["out"], []]
    page = CliRunner().invoke(racefree_command, ["report", "--format", "html", str(saved)])
    assert page.exit_code == 1
    assert '"maps":[{"tensor":"out"' in page.stdout


@pytest.mark.parametrize("most", [0, 1, 3])
def test_a_kept_map_is_cut_and_says_so(
    check: Check, script: Write, tmp_path: Path, most: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pictures, "KEPT_RUNS", most)
    check("--output", f"json={tmp_path}/r.json", script(RACY))
    (subject,) = json.loads((tmp_path / "r.json").read_text())["value"]["subjects"]
    (drawn,) = subject["records"]["maps"]
    assert len(drawn["owners"]) == most
    assert not drawn["complete"]


def test_arguments_belong_to_the_script(check: Check, script: Write) -> None:
    done = check(
        script("import sys\nassert sys.argv[1:] == ['--verbose', '-x', 'y'], sys.argv\n" + CLEAN),
        "--verbose",
        "-x",
        "y",
    )
    assert last_line(done.stdout) == summary(1, proved=1)


def test_options_behind_a_script_are_the_script_s_and_it_is_said(check: Check, script: Write) -> None:
    path = script(CLEAN)
    done = check(path, "--format=json", "--mine", "x")
    assert last_line(done.stdout) == summary(1, proved=1)
    assert (
        f"racefree: --format stands behind {path}, so the script gets it; options of racefree stand before"
        in done.stderr
    )
    assert "--mine" not in done.stderr


def test_a_second_script_is_an_argument_and_it_is_said(check: Check, script: Write) -> None:
    path = script("fill[(4,)](torch.zeros(64), 64, BLOCK=16, STEP=16)")
    result = check(path, path, "other.py", path)
    assert result.stdout.count(f"note: {path} was an argument of {path} and was not checked itself") == 1
    assert "other.py" not in result.stdout


def test_script_without_launches(check: Check, script: Write) -> None:
    path = script("print('nothing launched')\n")
    done = check(path)
    assert f"{path} launched no Triton kernel, so nothing was checked" in done.stdout
    assert last_line(done.stdout) == summary(0)
    assert done.exit_code == 5


def test_no_such_file(check: Check, tmp_path: Path) -> None:
    done = check(tmp_path / "missing.py")
    assert done.stderr == f"racefree: cannot read {tmp_path}/missing.py: No such file or directory\n"
    assert done.exit_code == 2


def test_syntax_error(check: Check, script: Write) -> None:
    path = script("def broken(:\n")
    done = check(path)
    assert done.stderr == f"racefree: {path}:12: syntax error: invalid syntax\n"
    assert done.exit_code == 2


def test_no_front_end_knows_the_file(check: Check, tmp_path: Path) -> None:
    path = tmp_path / "data.bin"
    path.write_bytes(b"\0\1\2")
    done = check(path)
    assert "is none of: " in done.stderr
    assert done.exit_code == 2


def test_kernel_that_does_not_compile(check: Check, script: Write) -> None:
    body = """
    @triton.jit
    def broken(out):
        tl.store(out, no_such_name)

    broken[(1,)](torch.zeros(1, device="cuda"))
    """
    done = check(script(body))
    assert "NOT ANALYSED compile-failed: " in done.stdout
    assert "no_such_name" in done.stdout
    assert last_line(done.stdout) == summary(1, unanalysed=1)
    assert done.exit_code == 3


@pytest.mark.parametrize(
    ("ending", "said", "status"),
    [
        ("raise ValueError('too bad')", "the script stopped with ValueError: too bad in line 14", 3),
        ("raise SystemExit(7)", "the script exited with status 7", 0),
        ("raise SystemExit('done early')", "the script exited: done early", 0),
        ("import os; os._exit(4)", "the script exited with status 4", 0),
        ("raise KeyboardInterrupt", "the script was interrupted", 130),
    ],
)
def test_ending_of_the_script_is_told(check: Check, script: Write, ending: str, said: str, status: int) -> None:
    done = check(script(f"{CLEAN}\n{ending}\n"))
    assert said in done.stdout
    assert last_line(done.stdout) == summary(1, proved=1)
    assert done.exit_code == status


def test_script_that_stops_before_its_first_launch(check: Check, script: Write) -> None:
    done = check(script("raise RuntimeError('no data')\n"))
    assert "the script stopped with RuntimeError: no data" in done.stdout
    assert done.exit_code == 2


def test_launches_of_a_forked_child_are_reported(check: Check, script: Write) -> None:
    body = f"import os\nif (child := os.fork()) == 0:\n    {RACY}    os._exit(0)\nos.waitpid(child, 0)\n{CLEAN}"
    done = check(script(body))
    assert last_line(done.stdout) == summary(2, races=1, racing=1, proved=1)
    assert done.exit_code == 1


def test_non_contiguous_tensor(check: Check, script: Write) -> None:
    body = "x = torch.zeros(4, 64, dtype=torch.int32, device='cuda').t()\nfill[(4,)](x[:, 0], 64, BLOCK=16, STEP=16)\n"
    done = check(script(body))
    assert last_line(done.stdout) == summary(1, proved=1)


def test_zero_size_tensor(check: Check, script: Write) -> None:
    done = check(script("fill[(4,)](torch.empty(0, dtype=torch.int32, device='cuda'), 0, BLOCK=16, STEP=8)\n"))
    assert last_line(done.stdout) == summary(1, proved=1)
    assert done.exit_code == 0


def test_empty_grid_claims_nothing(check: Check, script: Write) -> None:
    done = check(script("fill[(0,)](torch.zeros(64, dtype=torch.int32, device='cuda'), 64, BLOCK=16, STEP=8)\n"))
    assert last_line(done.stdout) == summary(1, vacuous=1)
    assert done.exit_code == 3


def run(arguments: list[str], **rest: object) -> subprocess.CompletedProcess[str]:
    return subprocess.run([sys.executable, *arguments], capture_output=True, text=True, check=False, **rest)  # type: ignore[call-overload,no-any-return]


WITHOUT = (
    "import sys; sys.modules['triton'] = None; "
    "from racefree.cli import main; sys.argv = ['racefree', 'check', {!r}]; main()"
)
TOO_OLD = (
    "import sys, types; old = types.ModuleType('triton'); old.__version__ = '3.1.0'; sys.modules['triton'] = old; "
    "from racefree.cli import main; sys.argv = ['racefree', 'check', {!r}]; main()"
)


@pytest.mark.parametrize(
    ("code", "said"),
    [
        (WITHOUT, "pip install 'racefree[triton]'"),
        (TOO_OLD, "Triton 3.1.0 is not supported; install a version from 3.7 to 3.9"),
    ],
)
def test_without_a_usable_triton(script: Write, code: str, said: str) -> None:
    done = run(["-c", code.format(str(script(CLEAN)))])
    assert said in done.stderr
    assert done.stderr.startswith("racefree: ")
    assert done.returncode == 2


@pytest.mark.parametrize("asked", [signal.SIGINT, signal.SIGTERM])
def test_interrupt_still_reports(script: Write, tmp_path: Path, asked: signal.Signals) -> None:
    flag = tmp_path / "launched"
    path = script(f"{RACY}open({str(flag)!r}, 'w').close()\nimport time\ntime.sleep(60)\n")
    process = subprocess.Popen(
        [sys.executable, "-m", "racefree", "check", str(path)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    while not flag.exists() and process.poll() is None:
        os.sched_yield()
    process.send_signal(asked)
    stdout, _ = process.communicate(timeout=60)
    assert "the script was interrupted" in stdout
    assert last_line(stdout) == summary(1, races=1, racing=1)
    assert process.returncode == 1


def test_module_and_second_entry_point(script: Write) -> None:
    code = "import sys; from racefree.cli import tile_race; sys.argv = ['tile-race', '--compile', {!r}]; tile_race()"
    done = run(["-c", code.format(str(script(CLEAN)))])
    assert "ok fill proved race-free for" in done.stdout
    assert done.returncode == 0


def test_header_line_number() -> None:
    assert HEADER.splitlines()[8].endswith("# line 9")


@pytest.fixture
def saved(check: Check, script: Write, tmp_path: Path) -> Path:
    folder = tmp_path / "saved"
    check("--save-launches", folder, script(RACY + CLEAN))
    return folder


def test_saved_launches_give_the_same_report(check: Check, saved: Path) -> None:
    done = check(saved)
    assert "script.py:9:5: RACE RF001" in done.stdout
    assert last_line(done.stdout) == summary(2, races=1, racing=1, proved=1)
    assert done.exit_code == 1


def test_saved_launches_need_neither_triton_nor_torch(saved: Path) -> None:
    code = (
        "import sys; sys.modules['triton'] = sys.modules['torch'] = None; "
        f"from racefree.cli import main; sys.argv = ['racefree', 'check', {str(saved)!r}]; main()"
    )
    done = run(["-c", code])
    assert last_line(done.stdout) == summary(2, races=1, racing=1, proved=1)
    assert done.returncode == 1


def test_damaged_saved_launch(check: Check, saved: Path) -> None:
    first, second = sorted(saved.iterdir())
    first.write_text(first.read_text()[:-200], encoding="utf-8")
    alone = check(first)
    assert alone.stderr.startswith(f"racefree: {first} is damaged: ")
    assert alone.exit_code == 2
    beside = check(saved)
    assert f"note: not checked: {first} is damaged" in beside.stdout
    assert last_line(beside.stdout).startswith("1 launches: ")
    assert beside.exit_code in (1, 2)
    second.unlink()


def test_folder_without_saved_launches(check: Check, tmp_path: Path) -> None:
    done = check(tmp_path)
    assert done.stderr == f"racefree: {tmp_path} holds no saved launches and no engine programs (*.json)\n"
    assert done.exit_code == 2


MODULE = """
module {
  tt.func public @fill(%out: !tt.ptr<i32> loc("out"), %step: i32 loc("step")) {
    %pid = tt.get_program_id x : i32
    %start = arith.muli %pid, %step : i32
    %lanes = tt.make_range {end = 16 : i32, start = 0 : i32} : tensor<16xi32>
    %base = tt.splat %start : i32 -> tensor<16xi32>
    %offsets = arith.addi %base, %lanes : tensor<16xi32>
    %pointers = tt.splat %out : !tt.ptr<i32> -> tensor<16x!tt.ptr<i32>>
    %at = tt.addptr %pointers, %offsets : tensor<16x!tt.ptr<i32>>, tensor<16xi32>
    tt.store %at, %lanes : tensor<16x!tt.ptr<i32>>
    tt.return
  }
}
"""


@pytest.mark.parametrize(("step", "status"), [(16, 0), (8, 1)])
def test_bare_module(check: Check, tmp_path: Path, step: int, status: int) -> None:
    path = tmp_path / "fill.ttir"
    path.write_text(MODULE, encoding="utf-8")
    done = check(path, "--grid", "4", "--arg", "out=i32[64]", "--arg", f"step={step}")
    assert done.exit_code == status, done.output
    assert "note: fill: taken to run with 4 warps; --num-warps says otherwise" in done.stdout


def test_bare_module_with_its_warps(check: Check, tmp_path: Path) -> None:
    """A tile that is stored and loaded again has a thread for each lane only if it has as many lanes as threads."""
    store = "tt.store %at, %lanes : tensor<16x!tt.ptr<i32>>"
    load = "%again = tt.load %at : tensor<16x!tt.ptr<i32>>\n    tt.store %at, %again : tensor<16x!tt.ptr<i32>>"
    path = tmp_path / "fill.ttir"
    path.write_text(MODULE.replace(store, f"{store}\n    {load}").replace("16", "64"), encoding="utf-8")
    given = ("--grid", "4", "--arg", "out=i32[256]", "--arg", "step=64")
    assert check(path, *given, "--num-warps", "2").exit_code == 0
    assert "RF004" in check(path, *given, "--num-warps", "4").stdout


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ((), "needs a grid: --grid X[,Y[,Z]]"),
        (("--grid", "none"), "--grid takes one to three sizes like 128 or 8,4, not 'none'"),
        (("--grid", "4"), "argument 'out' is missing"),
        (("--grid", "4", "--arg", "out=3", "--arg", "step=1"), "argument 'out' is a pointer, and '3' is no tensor"),
        (("--grid", "4", "--arg", "out=f64[8]", "--arg", "step=1"), "points at elements of 4 bytes, not 'f64[8]'"),
        (("--grid", "4", "--arg", "out=i32[8]", "--arg", "step=x"), "argument 'step' is a number, and 'x' is none"),
        (("--grid", "4", "--arg", "in=i32[8]"), "the module has no argument 'in'; it has out, step"),
    ],
)
def test_bare_module_with_wrong_options(check: Check, tmp_path: Path, options: tuple[str, ...], said: str) -> None:
    path = tmp_path / "fill.ttir"
    path.write_text(MODULE, encoding="utf-8")
    done = check(path, *options)
    assert said in done.stderr
    assert done.exit_code == 2


@pytest.mark.parametrize(
    ("name", "options", "said"),
    [
        ("script.py", ("--grid", "4"), "--grid concerns other inputs than given here (Python script): TTIR module"),
        (
            "script.py",
            ("--order", "both"),
            "--order concerns other inputs than given here (Python script): engine program",
        ),
        (
            "fill.ttir",
            ("--save-launches", "kept"),
            "--save-launches concerns other inputs than given here (TTIR module)",
        ),
        ("core.json", ("--target", "cuda:90"), "--target concerns other inputs than given here (engine program)"),
    ],
)
def test_options_that_would_do_nothing(
    check: Check, script: Write, tmp_path: Path, name: str, options: tuple[str, ...], said: str
) -> None:
    script(CLEAN)
    (tmp_path / "fill.ttir").write_text(MODULE, encoding="utf-8")
    (tmp_path / "core.json").write_text("{}", encoding="utf-8")
    done = check(*options, tmp_path / name)
    assert said in done.stderr
    assert done.exit_code == 2


def test_options_of_one_input_among_several(check: Check, tmp_path: Path) -> None:
    module, saved = tmp_path / "fill.ttir", tmp_path / "saved.json"
    module.write_text(MODULE, encoding="utf-8")
    saved.write_text(json.dumps({"kind": "racefree-launch"}), encoding="utf-8")
    done = check(module, saved, "--grid", "4", "--arg", "out=i32[64]", "--arg", "step=16")
    assert "concerns other inputs" not in done.stderr
    assert last_line(done.stdout) == summary(1, proved=1)


def test_script_that_changes_its_folder(check: Check, script: Write, monkeypatch: pytest.MonkeyPatch) -> None:
    path = script(f"import os\nos.chdir('/')\n{RACY}")
    monkeypatch.chdir(path.parent)
    done = check(path.name)
    assert "script.py:9:5: RACE RF001" in done.stdout.splitlines()[0]
    assert done.stdout.startswith("script.py:9:5: RACE")
    assert "# line 9" in done.stdout


def test_script_that_asks_for_itself_is_overheard(check: Check, script: Write) -> None:
    body = """
    import racefree

    x = torch.zeros(64, dtype=torch.int32, device="cuda")
    with racefree.trace(racefree.RaceDetector(on_launch=lambda launch: None)):
        fill[(4,)](x, 64, BLOCK=16, STEP=8)
    fill[(4,)](x, 64, BLOCK=16, STEP=16)
    racefree.analyze(fill, x, 64, grid=(4,), BLOCK=16, STEP=16)
    racefree.launches.clear()
    """
    done = check(script(body))
    assert last_line(done.stdout) == summary(3, races=1, racing=1, proved=2)
    assert done.exit_code == 1


def test_text_that_stdout_cannot_express_is_escaped(script: Write) -> None:
    racy = script("fill[(4,)](torch.zeros(64), 64, BLOCK=16, STEP=8)")
    racy.write_text(racy.read_text(encoding="utf-8").replace("# line 9", "# Zeile 9 → é"), encoding="utf-8")
    done = run(["-m", "racefree", "check", str(racy)], env=os.environ | {"PYTHONIOENCODING": "ascii"})
    assert done.returncode == 1, done.stderr
    assert "# Zeile 9 \\u2192 \\xe9" in done.stdout


def test_an_output_that_cannot_be_written_stops_no_other(script: Write, tmp_path: Path) -> None:
    path = script("fill[(4,)](torch.zeros(64), 64, BLOCK=16, STEP=8)")
    done = run(
        ["-m", "racefree", "check", "--output=html=/dev/full", f"--output=json={tmp_path / 'report.json'}", str(path)]
    )
    assert done.returncode == 1
    assert "racefree: cannot write /dev/full: No space left on device" in done.stderr
    assert "1 races in 1" in last_line(done.stdout)
    assert (tmp_path / "report.json").exists()


def test_a_full_stdout_is_told_plainly(script: Write) -> None:
    path = script("fill[(4,)](torch.zeros(64), 64, BLOCK=16, STEP=8)")
    with open("/dev/full", "w") as full:
        command = [sys.executable, "-m", "racefree", "check", str(path)]
        done = subprocess.run(command, stdout=full, stderr=subprocess.PIPE, text=True, check=False)
    assert done.returncode == 1
    assert done.stderr.splitlines()[-1] == "racefree: cannot write stdout: No space left on device"
    assert "Traceback" not in done.stderr


def test_a_clean_run_that_could_not_say_so_exits_2(check: Check, script: Write, tmp_path: Path) -> None:
    path = script("fill[(4,)](torch.zeros(64), 64, BLOCK=16, STEP=16)")
    result = check("--output=html=/dev/full", f"--output=json={tmp_path / 'report.json'}", path)
    assert (result.exit_code, last_line(result.stdout)[-18:]) == (2, "1 proved race-free")
    again = CliRunner().invoke(racefree_command, ["report", "--output=html=/dev/full", str(tmp_path / "report.json")])
    assert again.exit_code == 2
    assert "cannot write /dev/full" in again.stderr
