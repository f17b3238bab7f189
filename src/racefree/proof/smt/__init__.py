"""The two-copy solver: are there two executions, unordered, that share a byte? The only importer of z3."""
