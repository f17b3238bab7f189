"""The command line: reads options, runs the right front end, writes reports, and sets the exit status."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any, NoReturn, TextIO

import click
from click.core import ParameterSource

import racefree
from racefree import baseline, writing
from racefree.config import settings
from racefree.errors import InputError
from racefree.frontends import FRONT_ENDS, Found, FrontEnd, Request, front_end, inputs
from racefree.process import leave, open_standard_streams, script_output_on_stderr, stopped_by_signals, told_plainly
from racefree.replaying import MOST_PROGRAMS
from racefree.report import exits, formats, text
from racefree.report.model import Ending, Report
from racefree.report.progress import progress
from racefree.report.rules import RULES, explain

_SETTINGS = ("target", "lanes", "scope", "budget", "baseline", "jobs", "cache", "interpret")
"""The options that a pyproject.toml can set too."""

_SCRIPT_OPTIONS = {"ignore_unknown_options": True, "allow_interspersed_args": False}


@click.group(context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(racefree.__version__, prog_name="racefree")
def racefree_command() -> None:
    """Decide, without the accelerator, whether an accelerator kernel has a data race.

    Exit status: 0 proved race-free, 1 races, 2 wrong usage or input, 3 something was not analysed, 5 nothing to check,
    70 a fault of racefree itself, 130 interrupted.
    """


@racefree_command.command(context_settings=_SCRIPT_OPTIONS)
@click.option("--target", metavar="ARCH", help="Compile kernels for this target, e.g. cuda:90 or hip:gfx942 [cuda:80].")
@click.option("--lanes", type=click.Choice(["default", "strict"]), help="How lanes of one program are ordered.")
@click.option("--scope", type=click.Choice(["any", "launch"]), help="Try to prove any grid, or only the launch [any].")
@click.option("--budget", type=float, metavar="FACTOR", help="Let proofs search this many times as long as usual [1].")
@click.option(
    "--format", "shown", type=click.Choice(formats.NAMES), default="text", help="Format of the report [text]."
)
@click.option(
    "--output", "outputs", multiple=True, metavar="[FORMAT=]FILE", help="Write the report to a file; repeatable."
)
@click.option(
    "--save-launches", "save_to", type=click.Path(path_type=Path, file_okay=False), help="Keep every launch here."
)
@click.option(
    "--jobs",
    type=click.IntRange(min=1),
    metavar="N",
    help="Analyse in so many processes [one for each core, at most 8].",
)
@click.option("--cache", metavar="FOLDER", help="Keep proofs here, and do not prove again what is kept.")
@click.option(
    "--interpret", is_flag=True, default=None, help="Run proved launches, so that later ones find what they compute."
)
@click.option("--replay", is_flag=True, help="Check each verdict on a script by a run in Triton's interpreter.")
@click.option(
    "--replay-programs",
    type=click.IntRange(min=1),
    metavar="N",
    help=f"Run at most so many program instances of a launch [{MOST_PROGRAMS}].",
)
@click.option("--baseline", metavar="FILE", help="Do not report the races that this file knows.")
@click.option("--write-baseline", metavar="FILE", help="Write the races that were found to a baseline file.")
@click.option("--grid", metavar="X[,Y[,Z]]", help="Grid of a TTIR module.")
@click.option("--arg", "given", multiple=True, metavar="NAME=VALUE", help="Argument of a TTIR module; repeatable.")
@click.option(
    "--num-warps", type=click.IntRange(min=1), help="Warps of a TTIR module, which does not say so itself [4]."
)
@click.option(
    "--order", type=click.Choice(["both", "dependencies", "semaphores"]), help="What orders engine programs [both]."
)
@click.option(
    "--all/--first", "all_races", default=True, help="All races of an engine program, or only the first [all]."
)
@click.option(
    "--queues",
    type=click.Choice(["ignored", "completion", "trusted"]),
    default="ignored",
    help="What a transfer queue orders: nothing, completions, or whole transfers [ignored].",
)
@click.option("--compiler-exemptions", is_flag=True, help="Answer for BIR as its compiler's own check would.")
@click.option("-v", "--verbose", is_flag=True, help="Also show what was proved, and for which launches.")
@click.option("-q", "--quiet", is_flag=True, help="Show races and what was not analysed, nothing else.")
@click.argument("path", type=click.Path(path_type=Path))
@click.argument("arguments", nargs=-1, type=click.UNPROCESSED)
def check(path: Path, arguments: tuple[str, ...], **options: Any) -> None:
    """Check a script, saved launches, engine programs or a TTIR module.

    PATH is a Python script (ARGUMENTS are its own), a saved launch, an engine program, a .ttir file, or a folder of them;
    but for scripts, more paths and options may follow.
    A script runs in this process up to its kernels, which are analysed and not run; what it prints goes to stderr.
    """
    paths = [path]
    given = _given(click.get_current_context())
    with told_plainly():
        if arguments and (path.is_dir() or not front_end(path).takes_arguments):
            paths, behind = _paths_and_options(path, arguments)
            options |= behind
            given |= behind
            arguments = ()
        _tell_options_of_ours(path, arguments)
        _refuse_options_of_others(paths, given)
    _check(paths, arguments, options)


def _given(context: click.Context) -> dict[str, Any]:
    """What stands on the command line, without what is left at its default."""
    return {n: v for n, v in context.params.items() if context.get_parameter_source(n) is ParameterSource.COMMANDLINE}


def _refuse_options_of_others(paths: Sequence[Path], given: Iterable[str]) -> None:
    """Raises InputError for an option that concerns no input which is there."""
    kinds = [front_end(file) for file in inputs(paths)]
    for option in check.params:
        users = [kind for kind in FRONT_ENDS if option.name in kind.options]
        if option.name in given and users and not any(kind in users for kind in kinds):
            name = "/".join((*option.opts, *option.secondary_opts))
            meant, met = (", ".join(dict.fromkeys(kind.name for kind in each)) for each in (users, kinds))
            raise InputError(f"{name} concerns other inputs than given here ({met}): {meant}")


def _tell_options_of_ours(script: Path, arguments: Sequence[str]) -> None:
    """Says which of a script's own arguments look like options of racefree that stand in the wrong place."""
    ours = {name for param in check.params for name in param.opts if name.startswith("--")}
    names = dict.fromkeys(argument.partition("=")[0] for argument in arguments)
    for name in names:
        if name in ours:
            where = f"stands behind {script}, so the script gets it; options of racefree stand before the script"
            click.echo(f"racefree: {name} {where}", err=True)


def _paths_and_options(path: Path, arguments: tuple[str, ...]) -> tuple[list[Path], dict[str, Any]]:
    """What follows a path that is no script: more paths, and options of ours."""
    command = click.Command("check", params=check.params)
    with command.make_context("check", [str(path), *arguments]) as context:
        given = _given(context)
    return [given.pop("path"), *map(Path, given.pop("arguments", ()))], given


@racefree_command.command("explain")
@click.argument("rule", required=False)
def explain_command(rule: str | None) -> None:
    """Explain a rule: what it means, why it matters, a racy example and its fix. Without RULE, list all rules."""
    if rule is None:
        told = "".join(f"{known.name}  {known.title}\n" for known in RULES.values())
    elif rule.upper() in RULES:
        told = explain(rule.upper())
    else:
        raise click.UsageError(f"{rule} is no rule; the rules are {', '.join(RULES)}")
    with told_plainly():
        writing.show(told, sys.stdout)


@racefree_command.command("report")
@click.option(
    "--format", "shown", type=click.Choice(formats.NAMES), default="text", help="Format of the report [text]."
)
@click.option(
    "--output", "outputs", multiple=True, metavar="[FORMAT=]FILE", help="Write the report to a file; repeatable."
)
@click.option("-v", "--verbose", is_flag=True, help="Also show what was proved, and for which launches.")
@click.option("-q", "--quiet", is_flag=True, help="Show races and what was not analysed, nothing else.")
@click.argument("saved", type=click.Path(path_type=Path, dir_okay=False))
def report_command(saved: Path, **options: Any) -> None:
    """Show a report that was saved with `--format json`, in any format."""
    from racefree.report.json_format import parse, read

    with told_plainly():
        targets = writing.targets(options["outputs"], options["shown"])
        report = read(saved, parse)
        done = _written(report, targets, options, sys.stdout)
    code = exits.status(report)
    sys.exit(code if done or code == exits.RACES else exits.BAD_INPUT)


@click.command(context_settings=_SCRIPT_OPTIONS)
@click.option("--compile", "compiled", is_flag=True, help="Only analyse the compiled kernels, and run nothing.")
@click.option("--target", metavar="ARCH", help="Compile kernels for this target [cuda:80].")
@click.argument("script", type=click.Path(path_type=Path))
@click.argument("arguments", nargs=-1, type=click.UNPROCESSED)
def tile_race_command(compiled: bool, target: str | None, script: Path, arguments: tuple[str, ...]) -> None:
    """Check a Python script that launches Triton kernels, and show what was proved.

    Verdicts are checked by runs in Triton's interpreter, unless only the compiled kernels are to be analysed.
    """
    _check([script], arguments, {"target": target, "verbose": True, "replay": not compiled})


def main() -> None:
    """The `racefree` command."""
    open_standard_streams()
    racefree_command(prog_name="racefree")


def tile_race() -> None:
    """The `tile-race` command."""
    open_standard_streams()
    tile_race_command(prog_name="tile-race")


def _check(paths: Sequence[Path], arguments: Sequence[str], options: dict[str, Any]) -> NoReturn:
    start = time.perf_counter()
    found = Found()
    with told_plainly():
        targets = writing.targets(options.get("outputs", ()), options.get("shown", "text"))
        asked = {name: options.get(name) for name in _SETTINGS}
        chosen = settings(project=paths[0].resolve().parent, **asked)
        files = inputs(paths)
        grid = _grid(options.get("grid"))
        requests = [
            Request(
                path=file,
                settings=chosen,
                arguments=tuple(arguments),
                grid=grid,
                given=tuple(options.get("given", ())),
                save_to=options.get("save_to"),
                num_warps=options.get("num_warps"),
                order=options.get("order") or "both",
                all_races=options.get("all_races", True),
                queues=options.get("queues", "ignored"),
                compiler_exemptions=options.get("compiler_exemptions", False),
                replays=_replays(options),
                draws=formats.pictures([target.format for target in targets]),
            )
            for file in files
        ]
        known, write_known = _baselines(chosen.baseline, options.get("write_baseline"))
        with script_output_on_stderr() as stdout:
            with _progress(found, quiet=bool(options.get("quiet"))), stopped_by_signals():
                failed = _run(requests, found)
            report = found.report(seconds=time.perf_counter() - start)
            halted = found.interrupted or (report.script is not None and report.script.ending is Ending.INTERRUPTED)
            if write_known is not None:
                report = _with_new_baseline(report, write_known, complete=not (failed or halted))
            elif known is not None:
                report = baseline.applied(report, known)
            _own_faults(found, verbose=bool(options.get("verbose")))
            failed |= not _written(report, targets, options, stdout)
    code = exits.status(report, interrupted=found.interrupted)
    leave(exits.BAD_INPUT if failed and code not in (exits.RACES, exits.INTERRUPTED) else code, halted=halted)


def _replays(options: dict[str, Any]) -> int | None:
    """How many program instances of a launch to run, None to run none."""
    most: int | None = options.get("replay_programs")
    return (most or MOST_PROGRAMS) if options.get("replay") or most else None


def _baselines(known: str | None, written: str | None) -> tuple[baseline.Baseline | None, Path | None]:
    """The baseline to apply, and the file to write one to: at most one of the two."""
    if written is None:
        return None if known is None else baseline.read(Path(known)), None
    path = Path(written)
    if path.is_dir() or not path.parent.is_dir():
        raise InputError(f"cannot write {path}: no such folder, or it is one")
    return None, path


def _with_new_baseline(report: Report, path: Path, *, complete: bool) -> Report:
    """Writes the races of the report to the file and sets them aside. A run that did not reach its end writes nothing."""
    if not complete:
        return replace(report, notes=(*report.notes, f"{path} was not written, since the run did not reach its end"))
    new = baseline.of_report(report, path)
    baseline.write(new)
    told = f"{sum(known.count for known in new.races)} races were written to {path}"
    return replace(baseline.applied(report, new), notes=(*report.notes, told))


def _run(requests: Sequence[Request], found: Found) -> bool:
    """Check every input. Of several, one that cannot be read does not stop the others; true when there was one."""
    failed = False
    for kind, batch in _batches(requests):
        try:
            kind.load()(batch, found)
        except InputError as error:
            if len(requests) == 1:
                raise
            click.echo(f"racefree: {error}", err=True)
            found.notes.append(f"not checked: {error}")
            failed = True
        except KeyboardInterrupt:
            found.notes.append(f"interrupted while checking {batch[0].path}")
            found.interrupted = True
            break
    return failed


def _batches(requests: Sequence[Request]) -> list[tuple[FrontEnd, list[Request]]]:
    """Requests with their front ends: those of a front end that looks at files together in one batch, others alone."""
    batches: list[tuple[FrontEnd, list[Request]]] = []
    together: dict[str, list[Request]] = {}
    for request in requests:
        kind = front_end(request.path)
        if not kind.together:
            batches.append((kind, [request]))
        elif kind.name in together:
            together[kind.name].append(request)
        else:
            together[kind.name] = [request]
            batches.append((kind, together[kind.name]))
    return batches


def _own_faults(found: Found, *, verbose: bool) -> None:
    if found.script is not None and found.script.traceback:
        click.echo(found.script.traceback, err=True, nl=False)
    if found.tracebacks and verbose:
        click.echo("\n".join(dict.fromkeys(found.tracebacks)), err=True)


@contextmanager
def _progress(found: Found, *, quiet: bool) -> Iterator[None]:
    """Inside the block stderr says now and then how far the run has come."""
    if quiet:
        yield
        return
    found.progress = progress(sys.stderr)
    try:
        yield
    finally:
        found.progress.close()


def _written(report: Report, targets: Sequence[writing.Target], options: dict[str, Any], stdout: TextIO) -> bool:
    """Whether all was written; if not, stderr says what was not."""
    verbose, quiet = bool(options.get("verbose")), bool(options.get("quiet"))
    shown = text.Options(verbose=verbose, quiet=quiet, width=writing.terminal_width())
    try:
        writing.write(report, targets, shown, stdout)
    except InputError as error:
        click.echo(f"racefree: {error}", err=True)
        return False
    return True


def _grid(given: str | None) -> tuple[int, int, int] | None:
    if given is None:
        return None
    try:
        sizes = [int(part) for part in given.replace("x", ",").split(",")]
    except ValueError:
        sizes = []
    if not 1 <= len(sizes) <= 3 or any(size < 0 for size in sizes):
        raise InputError(f"--grid takes one to three sizes like 128 or 8,4, not {given!r}")
    x, y, z = (*sizes, 1, 1)[:3]
    return x, y, z
