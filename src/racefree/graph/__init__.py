"""The access graph of one compiled kernel: its memory accesses and everything that decides them, and nothing else."""
