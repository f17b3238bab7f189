"""Decides whether two accesses of an engine program race: from a program's timelines to an order, from that to its races.

`builder` and `program` are the model that front ends write; `timeline` spells out loops; `dependencies` and `semaphores` find
the `order`; `footprints` and `scan` find the unordered conflicts; `classify`, `describe`, `repair` and `disagree` explain
them; `check` puts it together. `reference` holds slow answers to test against, `kernels` the compiled loops.
"""
