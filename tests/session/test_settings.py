"""Where settings come from, and which are refused."""

from __future__ import annotations

from pathlib import Path

import pytest

from racefree.config import Settings, settings
from racefree.errors import InputError


def project(tmp_path: Path, table: str) -> Path:
    (tmp_path / "pyproject.toml").write_text(f"[tool.racefree]\n{table}\n", encoding="utf-8")
    folder = tmp_path / "deep" / "inside"
    folder.mkdir(parents=True)
    return folder


def test_given_beats_environment_beats_project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("RACEFREE_TARGET", raising=False)
    folder = project(tmp_path, 'target = "hip:gfx942"\nlanes = "strict"')
    assert settings(project=folder) == Settings(target="hip:gfx942", lanes="strict")
    monkeypatch.setenv("RACEFREE_TARGET", "cuda:90")
    assert settings(project=folder).target == "cuda:90"
    assert settings(project=folder, target="cuda:100", lanes=None) == Settings(target="cuda:100", lanes="strict")


@pytest.mark.parametrize(
    ("table", "said"),
    [
        (
            "targett = 3",
            "unknown key 'targett' in [tool.racefree]; "
            "known keys: baseline, budget, cache, interpret, jobs, lanes, scope, target",
        ),
        ("target = 80", "target must be a text like cuda:80"),
        ('lanes = "loose"', "lanes must be one of default, strict, not 'loose'"),
        ('scope = "all"', "scope must be one of any, launch, not 'all'"),
        ("budget = 0", "budget must be a positive factor, not 0"),
        ("budget = true", "budget must be a positive factor, not True"),
        ("baseline = 3", "baseline must be the name of a file, not 3"),
        ("cache = true", "cache must be the name of a folder, not True"),
        ("interpret = 1", "interpret must be true or false, not 1"),
        ("lanes = [", "pyproject.toml"),
    ],
)
def test_wrong_settings(tmp_path: Path, table: str, said: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("RACEFREE_TARGET", raising=False)
    with pytest.raises(InputError) as raised:
        settings(project=project(tmp_path, table))
    assert said in str(raised.value)
    assert "pyproject.toml: " in str(raised.value)


def test_baseline_of_a_project_is_relative_to_its_file(tmp_path: Path) -> None:
    folder = project(tmp_path, 'baseline = "known/races.json"')
    assert settings(project=folder).baseline == str(tmp_path / "known" / "races.json")
    assert settings(project=folder, baseline="other.json").baseline == "other.json"


def test_table_that_is_none(tmp_path: Path) -> None:
    (tmp_path / "pyproject.toml").write_text("[tool]\nracefree = 3\n", encoding="utf-8")
    with pytest.raises(InputError, match="must be a table"):
        settings(project=tmp_path)
