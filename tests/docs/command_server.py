"""Runs command lines in forks of a process that has the slow packages loaded already; `command_client.py` asks it to.

    python command_server.py SOCKET

Only the imports are shared: each command has its own process, working directory, environment and standard streams.
"""

from __future__ import annotations

import importlib
import json
import os
import runpy
import socket
import sys
import traceback
from importlib.metadata import entry_points
from pathlib import Path

SLOW = ("numpy", "torch", "triton", "triton.compiler", "pytest", "racefree.cli", "racefree.session")


def main(address: str) -> None:
    for name in SLOW:
        importlib.import_module(name)
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(address)
        listener.listen()
        while True:
            connection, _ = listener.accept()
            with connection:
                serve(connection)


def serve(connection: socket.socket) -> None:
    head, streams, _flags, _address = socket.recv_fds(connection, 4, 3)
    length = int.from_bytes(head, "big")
    text = b""
    while len(text) < length:
        text += connection.recv(length - len(text))
    request = json.loads(text)
    child = os.fork()
    if child == 0:
        for number, stream in enumerate(streams):
            os.dup2(stream, number)
        os._exit(run(request["program"], request["arguments"], request["folder"], request["environment"]))
    for stream in streams:
        os.close(stream)
    _, status = os.waitpid(child, 0)
    connection.sendall(bytes([os.waitstatus_to_exitcode(status) & 0xFF]))


def run(program: str, arguments: list[str], folder: str, environment: dict[str, str]) -> int:
    os.chdir(folder)
    os.environ.clear()
    os.environ.update(environment)
    try:
        start(program, arguments)
    except SystemExit as leaving:
        if isinstance(leaving.code, str):
            sys.stderr.write(f"{leaving.code}\n")
        return leaving.code if isinstance(leaving.code, int) else int(leaving.code is not None)
    except BaseException:
        traceback.print_exc()
        return 1
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
    return 0


def start(program: str, arguments: list[str]) -> None:
    sys.argv = [program, *arguments]
    match program, arguments:
        case "racefree", _:
            importlib.import_module("racefree.cli").main()
        case "tile-race", _:
            importlib.import_module("racefree.cli").tile_race()
        case "pytest", _:
            run_pytest(arguments)
        case "python", ["-m", "pytest", *rest]:
            run_pytest(rest)
        case "python", ["-m", module, *rest]:
            sys.argv = [module, *rest]
            sys.path.insert(0, os.getcwd())
            runpy.run_module(module, run_name="__main__", alter_sys=True)
        case "python", [script, *rest]:
            sys.argv = [script, *rest]
            sys.path.insert(0, str(Path(script).resolve().parent))
            runpy.run_path(script, run_name="__main__")
        case _:
            raise SystemExit(f"{program} {arguments} is nothing this server can run")


def run_pytest(arguments: list[str]) -> None:
    plugin = "racefree.pytest_plugin"
    if not any(point.value == plugin for point in entry_points(group="pytest11")):
        arguments = ["-p", plugin, *arguments]
    # This process has the package loaded already, which a fresh one would not.
    arguments = ["-W", "ignore::pytest.PytestAssertRewriteWarning", *arguments]
    raise SystemExit(int(importlib.import_module("pytest").main(arguments)))


if __name__ == "__main__":
    main(sys.argv[1])
