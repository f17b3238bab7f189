"""Shows that conditions over integers cannot hold together, as the emptiness of an integer set (isl).

Parameters, grid sizes and program ids stay symbolic: all are dimensions of one set. What is not linear passes: the answer is
then not "never" but nothing.
"""

from racefree.proof.affine.prover import SHARED, SetProver

__all__ = ["SHARED", "SetProver"]
