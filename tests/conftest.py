"""Lets every test import the helper modules that lie beside the tests of any folder; their names are unique."""

from __future__ import annotations

import sys
from pathlib import Path

sys.path += sorted({str(module.parent) for module in Path(__file__).parent.glob("*/*.py")} - {*sys.path})
