"""The geometry rung: exact footprints of every program instance of one launch, and whether they meet."""
