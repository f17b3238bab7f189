"""Exact overlap of strided byte patterns, sweeps over byte ranges, and sets of intervals. Knows no front end."""

from racefree.geometry.batch import DISJOINT, OVERLAP, UNKNOWN_PAIR, overlaps_batch
from racefree.geometry.distinct import distinct_overlap_witness
from racefree.geometry.equation import UNKNOWN, Unknown
from racefree.geometry.injective import is_injective, self_overlap_witness
from racefree.geometry.intervals import Meeting, Runs, any_meeting, first_meeting_runs, merge_runs, runs_of
from racefree.geometry.overlap import Witness, element_start, overlap_witness, overlaps, span
from racefree.geometry.pattern_array import PatternArray
from racefree.geometry.plane import (
    PlaneDim,
    PlanePattern,
    PlaneWitness,
    on_one_line,
    overlap_witness_2d,
    overlaps_2d,
    rows_of_location,
)
from racefree.geometry.sweep import candidate_pairs, candidate_pairs_within, count_candidate_pairs

__all__ = [
    "DISJOINT",
    "OVERLAP",
    "UNKNOWN",
    "UNKNOWN_PAIR",
    "Meeting",
    "PatternArray",
    "PlaneDim",
    "PlanePattern",
    "PlaneWitness",
    "Runs",
    "Unknown",
    "Witness",
    "any_meeting",
    "candidate_pairs",
    "candidate_pairs_within",
    "count_candidate_pairs",
    "distinct_overlap_witness",
    "element_start",
    "first_meeting_runs",
    "is_injective",
    "merge_runs",
    "on_one_line",
    "overlap_witness",
    "overlap_witness_2d",
    "overlaps",
    "overlaps_2d",
    "overlaps_batch",
    "rows_of_location",
    "runs_of",
    "self_overlap_witness",
    "span",
]
