"""Decides the corpus with other versions of what racefree rests on, and says where an answer differs.

python tests/matrix/run_matrix.py [--folder FOLDER] [--only WORD] [--without-tests]

Each environment is a virtual environment of its own in FOLDER (.venv/matrix). It holds the packages that differ and takes the
others from the environment that runs this, which holds the usual versions; environments of another Python hold everything
but Triton and torch, and decide the launches that the usual environment has saved. The answers must be those of the usual
environment, but where the head of a corpus file has a line for a Triton version:

    # triton 3.9: ok

Exit status 1 when an answer or a test differs.
"""

from __future__ import annotations

import argparse
import json
import re
import shutil
import subprocess
import sys
import sysconfig
import tomllib
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent
ROOT = HERE.parent.parent
AT_ONCE = 2
SECONDS = 1200


@dataclass(frozen=True, slots=True)
class Environment:
    """`packages` differ from the usual; with their own dependencies if these are `whole`. `tests` are run beside the corpus.

    Of another `python`, an environment holds all packages.
    """

    name: str
    packages: tuple[str, ...]
    tests: tuple[str, ...] = ()
    whole: bool = False
    python: str = ""


@dataclass(frozen=True, slots=True)
class Row:
    """What came out of an environment. `differing` are corpus files with another answer, `failed` says why there is none."""

    name: str
    versions: dict[str, str]
    files: int = 0
    differing: tuple[str, ...] = ()
    by_version: tuple[str, ...] = ()
    tests: str = ""
    failed: str = ""

    @property
    def good(self) -> bool:
        return not (self.differing or self.failed) and "failed" not in self.tests and "error" not in self.tests


def oldest() -> tuple[str, ...]:
    """The lower bounds of pyproject.toml, and of its Triton extra, as exact versions."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    bounds = [*project["dependencies"], *project["optional-dependencies"]["triton"]]
    found = (re.match(r"([\w-]+)>=([\d.]+)", bound) for bound in bounds)
    return tuple(f"{match[1]}=={match[2]}" for match in found if match is not None)


def environments() -> tuple[Environment, ...]:
    smt = ("tests/smt", "tests/affine")
    front = ("tests/triton", "tests/ttir", "tests/eager")
    (least_z3,) = (package for package in oldest() if package.startswith("z3-solver"))
    return (
        Environment("z3 oldest", (least_z3,), smt),
        Environment("z3 4.15.3", ("z3-solver==4.15.3",), smt),
        Environment("z3 newest", ("z3-solver",), smt),
        Environment("triton 3.7", ("triton==3.7.1",), front),
        Environment("triton 3.9", ("triton==3.9.0",), front),
        Environment("all oldest", oldest(), ("tests/session", "tests/geometry", "tests/report"), whole=True),
        Environment("python 3.12", (), ("tests/geometry",), python="3.12"),
        Environment("python 3.13", (), ("tests/geometry",), python="3.13"),
    )


# ---- making them -----------------------------------------------------------------------------------------------------


def made(environment: Environment, folder: Path) -> Path:
    """The interpreter of the environment, which is made unless it is there. Raises RuntimeError with the reason."""
    home = folder / environment.name.replace(" ", "-")
    interpreter, ready = home / "bin" / "python", home / "ready"
    wanted = " ".join(environment.packages) or "usual"
    if ready.exists() and ready.read_text() == wanted and "newest" not in environment.name:
        return interpreter
    shutil.rmtree(home, ignore_errors=True)
    base = other_python(environment.python) if environment.python else sys.executable
    run([base, "-m", "venv", "--without-pip", str(home)])
    pip = [sys.executable, "-m", "pip", "--python", str(interpreter), "install", "--quiet", "--ignore-installed"]
    if environment.python:
        run([*pip, "-c", str(ROOT / "constraints.txt"), str(ROOT), "pytest", "hypothesis"])
        run([*pip, "--no-deps", "--editable", str(ROOT)])
    else:
        run([*pip, *environment.packages] if environment.whole else [*pip, "--no-deps", *environment.packages])
        beside = sysconfig.get_path("purelib")
        rest = next((home / "lib").glob("python*")) / "site-packages" / "the_usual_rest.pth"
        rest.write_text(f"import site; site.addsitedir({beside!r})\n")
    ready.write_text(wanted)
    return interpreter


def other_python(minor: str) -> str:
    """An interpreter of this minor version, found by name or through pyenv."""
    found = shutil.which(f"python{minor}")
    if found and subprocess.run([found, "--version"], capture_output=True, check=False).returncode == 0:
        return found
    if shutil.which("pyenv"):
        asked = subprocess.run(["pyenv", "prefix", minor], capture_output=True, text=True, check=False)
        if asked.returncode == 0:
            return str(Path(asked.stdout.strip()) / "bin" / "python")
    raise RuntimeError("not on this machine")


def run(command: Sequence[str]) -> str:
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=SECONDS, check=False)
    if done.returncode != 0:
        last = [line for line in (done.stderr + done.stdout).splitlines() if line.strip()][-1:]
        raise RuntimeError(f"{Path(command[0]).name} {' '.join(command[1:4])} failed: {' '.join(last)}")
    return done.stdout


# ---- asking them -----------------------------------------------------------------------------------------------------


def answers(interpreter: str, *options: str) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(run([interpreter, str(HERE / "corpus_verdicts.py"), *options]))
    return found


def row(environment: Environment, folder: Path, usual: dict[str, Any], *, tests: bool) -> Row:
    try:
        interpreter = made(environment, folder)
        options = ("--kept", str(folder / "launches")) if environment.python else ()
        found = answers(str(interpreter), *options)
    except (RuntimeError, subprocess.TimeoutExpired) as error:
        absent = str(error) == "not on this machine"
        return Row(environment.name, {}, tests=str(error)) if absent else Row(environment.name, {}, failed=str(error))
    expected = dict(expectations(usual["verdicts"], found["versions"]["triton"]))
    differing = {name for name, want in expected.items() if not agrees(found["verdicts"].get(name), want)}
    by_version = {name for name, want in expected.items() if want != usual["verdicts"][name]}
    ran = tested(interpreter, environment.tests) if tests and environment.tests else ""
    return Row(
        environment.name,
        found["versions"],
        len(expected),
        tuple(sorted(differing)),
        tuple(sorted(by_version)),
        ran,
        "; ".join(fault.strip().splitlines()[-1] for fault in found["faults"][:1]),
    )


def expectations(usual: dict[str, Any], triton: str) -> Iterator[tuple[str, Any]]:
    """The answers of the usual environment, but for files with a line for this Triton, of which it is the status alone."""
    for name, answer in usual.items():
        text = (ROOT / "tests" / "corpus" / f"{name.split()[0]}.py").read_text(encoding="utf-8")
        changed = dict(re.findall(r"^# triton ([\d.]+): (\w+)$", text, re.MULTILINE))
        status = changed.get(".".join(triton.split(".")[:2]))
        yield name, answer if status is None else {"status": status}


def agrees(answer: dict[str, Any] | None, want: dict[str, Any]) -> bool:
    return answer is not None and all(answer[key] == value for key, value in want.items())


def tested(interpreter: Path, tests: Sequence[str]) -> str:
    """The closing words of a test run."""
    command = [str(interpreter), "-m", "pytest", "-q", *tests]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=SECONDS, check=False)
    closing = [line for line in done.stdout.splitlines() if line.strip()][-1:]
    words = re.sub(r" in [\d.]+s.*", "", closing[0]) if closing else "no test ran, which is an error"
    failing = re.findall(r"^(?:FAILED|ERROR) (\S+)", done.stdout, re.MULTILINE)
    return words + (f": {', '.join(failing)}" if failing else "")


# ---- telling ---------------------------------------------------------------------------------------------------------


def table(rows: Sequence[Row]) -> str:
    lines = ["| environment | python | triton | z3 | corpus answers | tests |", "| --- | --- | --- | --- | --- | --- |"]
    for each in rows:
        said = f"{each.files - len(each.differing)} of {each.files} as expected" if each.files else "none"
        if each.by_version:
            said += f", {len(each.by_version)} of them by version"
        packages = (each.versions.get(name, "") for name in ("python", "triton", "z3-solver"))
        lines.append("| " + " | ".join((each.name, *packages, said, each.failed or each.tests)) + " |")
    for each in rows:
        lines += [f"{each.name}: {name} has another answer" for name in each.differing]
    return "\n".join(lines) + "\n"


def main() -> int:
    parser = argparse.ArgumentParser()
    parser.add_argument("--folder", type=Path, default=ROOT / ".venv" / "matrix")
    parser.add_argument("--only", default="", metavar="WORD")
    parser.add_argument("--without-tests", action="store_true")
    options = parser.parse_args()
    folder = options.folder.resolve()
    launches = folder / "launches"
    shutil.rmtree(launches, ignore_errors=True)
    usual = answers(sys.executable, "--keep", str(launches))
    chosen = [environment for environment in environments() if options.only in environment.name]
    with ThreadPoolExecutor(AT_ONCE) as pool:
        asked = [pool.submit(row, each, folder, usual, tests=not options.without_tests) for each in chosen]
        rows = [Row("usual", usual["versions"], len(usual["verdicts"])), *(each.result() for each in asked)]
    sys.stdout.write(table(rows))
    return 0 if all(each.good for each in rows) else 1


if __name__ == "__main__":
    sys.exit(main())
