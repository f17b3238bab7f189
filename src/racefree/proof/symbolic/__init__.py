"""Reads a Program symbolically: every access as a record over program ids, lanes, loop iterations and parameters.

1. `terms` are the integers and conditions records are made of. 2. `arithmetic` and `tiles` give each operation its meaning.
3. `lowering` folds the program into `records`. 4. `bounds` and `replacing` evaluate and specialise terms.
"""
