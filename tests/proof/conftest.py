"""Lets the tests of this folder import the modules beside them, and those that read the corpus."""

from __future__ import annotations

import sys
from pathlib import Path

HERE = Path(__file__).parent
for folder in (HERE, HERE.parent / "soundness"):
    if str(folder) not in sys.path:
        sys.path.append(str(folder))
