"""Shows that conditions over integers cannot hold together, as the emptiness of an integer set (isl).

Parameters, grid sizes and program ids stay symbolic: all are dimensions of one set.
1. `simplify` makes the conjunction smaller. 2. `products` and `divisions` say what follows in linear arithmetic from what is
not linear. 3. `text` writes the set. 4. `prover` asks.
"""

from racefree.proof.affine.prover import PROVER, SetProver

__all__ = ["PROVER", "SetProver"]
