"""Loops over flat arrays, written so that Numba compiles them and plain Python runs them too. They call nothing of ours.

Each is one long function on purpose: compiled code counts references of every array it passes on, and split into small
functions over tuples of arrays the same runs took 25 times as long.

Clocks count thirds of a step: on an engine's timeline the step at position p has started at 3p + 1, has read its inputs at
3p + 2 and has completed at 3p + 3.
"""
