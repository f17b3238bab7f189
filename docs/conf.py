"""How Sphinx builds these pages: `sphinx-build -W docs docs/_build/html`."""

import sys
from pathlib import Path

HERE = Path(__file__).parent
sys.path[:0] = [str(HERE), str(HERE.parent / "src")]

import racefree  # noqa: E402

project = "racefree"
author = "the racefree developers"
release = version = racefree.__version__
extensions = ["myst_parser", "sphinx.ext.autodoc", "from_source"]
exclude_patterns = ["_build"]
html_theme = "furo"
html_title = "racefree"
html_show_sourcelink = False
html_show_copyright = False
myst_heading_anchors = 3
autodoc_typehints = "none"
autodoc_preserve_defaults = True
nitpicky = False
