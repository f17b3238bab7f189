"""`python -m racefree` is the `racefree` command."""

from __future__ import annotations

from racefree.cli import main

if __name__ == "__main__":
    main()
