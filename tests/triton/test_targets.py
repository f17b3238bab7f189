"""Targets, versions, and the memory model rows."""

from __future__ import annotations

import sys
from types import SimpleNamespace

import pytest

from racefree.errors import InputError, MissingPackage, UnsupportedVersion
from racefree.triton.targets import Target, parse_target
from racefree.triton.versions import require_torch, require_triton


@pytest.mark.parametrize(
    ("text", "target"),
    [
        ("cuda:80", Target("cuda", 80, 32)),
        ("80", Target("cuda", 80, 32)),
        ("sm_90", Target("cuda", 90, 32)),
        ("cuda:sm90a", Target("cuda", 90, 32)),
        ("CUDA:100", Target("cuda", 100, 32)),
        ("hip:gfx942", Target("hip", "gfx942", 64)),
        ("gfx90a", Target("hip", "gfx90a", 64)),
        ("gfx1100", Target("hip", "gfx1100", 32)),
    ],
)
def test_spellings(text: str, target: Target) -> None:
    pytest.importorskip("triton")
    assert parse_target(text) == target
    assert parse_target(str(target)) == target


@pytest.mark.parametrize("text", ["", "cuda", "cuda:", "cuda:8", "rocm", "xpu:0", "hip:80", "gfx"])
def test_what_is_no_target(text: str) -> None:
    with pytest.raises(InputError, match="is no target: write one like cuda:80"):
        parse_target(text)


def test_the_environment_decides_when_nothing_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("triton")
    monkeypatch.delenv("RACEFREE_TARGET", raising=False)
    assert str(parse_target(None)) == "cuda:80"
    monkeypatch.setenv("RACEFREE_TARGET", "gfx942")
    assert str(parse_target(None)) == "hip:gfx942"
    assert str(parse_target("90")) == "cuda:90"
    monkeypatch.setenv("RACEFREE_TARGET", "nonsense")
    with pytest.raises(InputError, match=r"'nonsense' \(from RACEFREE_TARGET\)"):
        parse_target(None)


def test_capabilities() -> None:
    assert Target("cuda", 86, 32).capability == (8, 6)
    assert Target("cuda", 100, 32).capability == (10, 0)
    assert Target("hip", "gfx942", 64).capability == (9, 4)
    assert Target("hip", "gfx1100", 32).capability == (11, 0)


@pytest.mark.parametrize("version", ["3.6.9", "3.10.0", "2.1.0", "4.0.0", "main"])
def test_unsupported_versions(monkeypatch: pytest.MonkeyPatch, version: str) -> None:
    monkeypatch.setitem(sys.modules, "triton", SimpleNamespace(__version__=version))  # type: ignore[arg-type]
    with pytest.raises(UnsupportedVersion, match=r"3\.7 to 3\.9"):
        require_triton()


@pytest.mark.parametrize("version", ["3.7.0", "3.8.0", "3.9.1", "3.8.0+git1234"])
def test_supported_versions(monkeypatch: pytest.MonkeyPatch, version: str) -> None:
    module = SimpleNamespace(__version__=version)
    monkeypatch.setitem(sys.modules, "triton", module)  # type: ignore[arg-type]
    assert require_triton() is module


def test_missing_packages(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "triton", None)  # type: ignore[arg-type]
    monkeypatch.setitem(sys.modules, "torch", None)  # type: ignore[arg-type]
    with pytest.raises(MissingPackage, match=r"racefree\[triton\]"):
        require_triton()
    with pytest.raises(MissingPackage, match="pip install torch"):
        require_torch()
    with pytest.raises(MissingPackage, match=r"racefree\[triton\]"):
        parse_target("cuda:80")
