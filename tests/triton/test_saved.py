"""Saved launches: read back as they were, without torch or Triton, and refused when they are not whole."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from racefree.access import Site
from racefree.errors import InputError, Refusal
from racefree.graph.launch import Argument, Descriptor, LaunchFacts, Scalar, Storage, Tensor
from racefree.triton.launches import CapturedConfig, CapturedLaunch
from racefree.triton.saved import SCHEMA, from_json, load_launch, save_launch, to_json
from racefree.ttir.generic import GenericModule

MODULE = GenericModule('"builtin.module"() ({}) : () -> ()', {("tt.store", 3, 0, 0): 2}, "3.8.0")
INTS = Storage(4096, 12, np.arange(3, dtype=np.int32).view(np.uint8), "")
FLOATS = Storage(8192, 64, None, "float dtype float32")
BASE = Tensor(8192, 4, "float32", (4, 4), (4, 1), FLOATS)


def launch() -> CapturedLaunch:
    arguments: dict[str, Argument] = {
        "table": Tensor(4096, 4, "int32", (3,), (1,), INTS),
        "tail": Tensor(4100, 4, "int32", (2,), (-1,), INTS),
        "desc": Descriptor(BASE, (4, 4), (4, 1), (2, 2), "nan"),
        "n": Scalar(1 << 40),
        "flag": Scalar(True),
        "scale": Scalar(0.1),
        "limit": Scalar(float("-inf")),
        "missing": Scalar(None),
    }
    config = {"BLOCK": 64, "num_warps": 8}
    facts = LaunchFacts("k", (3, 2, 1), arguments, 8, 32, 1, "cuda:80", "3.8.0", config, {"BLOCK": 64, "m": None})
    inner = Site("lib.py", 3, 1, "helper", (Site("user.py", 9),))
    failed = CapturedConfig(None, None, {"BLOCK": 128}, Refusal("compile-failed", "too large", inner))
    return CapturedLaunch("k", Site("lib.py", 1), inner, (CapturedConfig(facts, MODULE, config), failed), ("a note",))


def comparable(captured: CapturedLaunch) -> Any:
    """A launch with contents as bytes, which compare."""
    return [
        captured.kernel, captured.site, captured.launch_site, captured.notes,
        [(c.module, c.config, c.failure) for c in captured.configs],
        [
            (f.kernel, f.grid, f.num_warps, f.warp_size, f.num_ctas, f.target, f.triton_version, f.config, f.constants)
            for f in (c.facts for c in captured.configs) if f is not None
        ],
        [
            [(name, plain(a)) for name, a in f.arguments.items()]
            for f in (c.facts for c in captured.configs) if f is not None
        ],
    ]  # fmt: skip


def plain(argument: Argument) -> Any:
    match argument:
        case Tensor():
            held = argument.storage
            packed = None if held.contents is None else held.contents.tobytes()
            shown = (argument.address, argument.element_bytes, argument.dtype, argument.shape, argument.strides)
            return (*shown, held.address, held.nbytes, packed, held.why_unknown)
        case Descriptor():
            return plain(argument.base), argument.shape, argument.strides, argument.block_shape, argument.padding
        case Scalar():
            return type(argument.value), argument.value


def test_a_launch_reads_back_as_it_was(tmp_path: Path) -> None:
    path = save_launch(launch(), tmp_path / "new")
    assert path.parent == tmp_path / "new"
    assert path.name.startswith("k-")
    again = load_launch(path)
    assert comparable(again) == comparable(launch())
    facts = again.configs[0].facts
    assert facts is not None
    table, tail = facts.arguments["table"], facts.arguments["tail"]
    assert isinstance(table, Tensor)
    assert isinstance(tail, Tensor)
    assert table.storage is tail.storage
    assert to_json(again) == to_json(launch())
    assert save_launch(launch(), tmp_path / "new") == path


def test_reading_needs_neither_torch_nor_triton(tmp_path: Path) -> None:
    path = save_launch(launch(), tmp_path)
    code = (
        "import sys; sys.modules['torch'] = sys.modules['triton'] = None\n"
        "from pathlib import Path\n"
        "from racefree.triton.saved import load_launch\n"
        f"print(load_launch(Path({str(path)!r})).kernel)\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (0, "k\n"), done.stderr


def edited(**changes: Any) -> str:
    return json.dumps(json.loads(to_json(launch())) | changes)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "F is damaged: Expecting value"),
        ("[1]", "F is no saved launch"),
        ("{}", "F is no saved launch"),
        (to_json(launch())[:400], "F is damaged"),
        (edited(schema=SCHEMA + 1), f"F has schema {SCHEMA + 1}, and this racefree reads up to {SCHEMA}"),
        (edited(schema="1"), "F is damaged: its schema number is '1'"),
        (edited(configs=[{}]), "F is damaged: 'config' is missing"),
        (edited(modules=[]), "F is damaged: list index out of range"),
        (edited(storages=[]), "F is damaged: list index out of range"),
        (edited(kernel=3), "F is damaged: 3 should be text"),
        (edited(configs=[{"config": {}, "module": None, "failure": None, "facts": None}]), "neither a module"),
    ],
)
def test_what_is_not_whole_is_one_clear_line(text: str, message: str) -> None:
    with pytest.raises(InputError) as caught:
        from_json(text, name="F")
    assert message in str(caught.value)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("path", "value", "message"),
    [
        (("facts", "grid"), [1, 2], "not enough values"),
        (("facts", "grid"), [1, 2, -3], "-3 should be at least 0"),
        (("facts", "grid"), [1, 2, True], "True should be a whole number"),
        (("facts", "num_warps"), 0, "0 should be at least 1"),
        (("facts", "arguments", "n"), {"scalar": "5"}, "argument n is of no known kind"),
        (("facts", "arguments", "table", "tensor", "shape"), [3, 3], "as many strides as dimensions"),
        (("facts", "arguments", "table", "tensor", "storage"), -1, "-1 should be at least 0"),
        (("facts", "arguments", "desc", "descriptor", "block_shape"), [2], "parts of different ranks"),
    ],
)
def test_facts_that_cannot_be_are_refused(path: tuple[str, ...], value: Any, message: str) -> None:
    document = json.loads(to_json(launch()))
    place = document["configs"][0]
    for key in path[:-1]:
        place = place[key]
    place[path[-1]] = value
    with pytest.raises(InputError, match=message):
        from_json(json.dumps(document))


@pytest.mark.parametrize("packed", ["eJw=", "!!!", "AAAA", "eJxjYGBgYGRgYAYAAAwABA=="])
def test_contents_of_another_length_are_refused(packed: str) -> None:
    document = json.loads(to_json(launch()))
    document["storages"][0]["contents"] = packed
    with pytest.raises(InputError, match="damaged"):
        from_json(json.dumps(document))


def test_a_missing_file_and_a_folder_that_cannot_be(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="cannot read"):
        load_launch(tmp_path / "none.json")
    (tmp_path / "file").write_text("")
    with pytest.raises(InputError, match="cannot save launches"):
        save_launch(launch(), tmp_path / "file")
