"""Vela's own streams, and each of them with one wait taken away, against brute force on Vela's operations."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

import pytest

pytest.importorskip("ethosu.vela")

from vela_brute import Found, command_sequence, races
from vela_streams import Stream, make

from racefree.engines.records import EngineRace, EngineVerdict
from racefree.ethosu.check import check_stream
from racefree.verdict import Status

STREAMS = 200
DROPPED_FROM = 60
"""Streams of which every single wait is taken away in turn; the longer run is `python tests/ethosu/long_run.py`."""


def verdict(words: Sequence[int], stream: Stream) -> EngineVerdict:
    return check_stream(words, stream.accelerator.name)


def pairs(found: EngineVerdict) -> Found:
    """Racing operations by word, transfers of one queue apart, races inside one operation not possible."""

    def words(race: EngineRace) -> tuple[int, int]:
        assert race.first.source is not None
        assert race.second.source is not None
        first, second = sorted((race.first.source[1], race.second.source[1]))
        return first, second

    races = found.orders[0].races
    transfers = {words(race) for race in races if race.first.opcode == race.second.opcode == "DMA"}
    return Found(frozenset({words(race) for race in races} - transfers), frozenset(transfers))


def test_vela_streams_are_clean_or_explained() -> None:
    """Two gaps are left by Vela. It lets a kernel write over the weights or scales that the very next kernel reads,
    because BLOCKDEP looks at feature maps only; and on Ethos-U65 it never waits between two transfers, of which two can
    be running at a time. Both show as exactly these operations."""
    explained: Counter[str] = Counter()
    for seed in range(STREAMS):
        stream = make(seed)
        found = verdict(stream.words, stream)
        assert pairs(found) == races(stream.words, stream.operations, stream.accelerator), seed
        for race in found.orders[0].races:
            if race.first.opcode == race.second.opcode == "DMA":
                assert "U65" in stream.accelerator.name
                assert race.queue_order_only
                explained["transfers"] += 1
            else:
                assert race.second.engine == "kernel constants", (seed, race)
                assert race.first.engine == "kernel writes", (seed, race)
                explained["constants"] += 1
    assert explained["transfers"] > 0
    assert explained["constants"] <= 8


def test_every_dropped_wait_is_classified_as_brute_force_says() -> None:
    outcomes: Counter[bool] = Counter()
    for seed in range(DROPPED_FROM):
        stream = make(seed)
        for at, what, _ in command_sequence(stream.words):
            if what.endswith("wait"):
                words = stream.words[:at] + stream.words[at + 1 :]
                expected = races(words, stream.operations, stream.accelerator)
                found = verdict(words, stream)
                assert pairs(found) == expected, (seed, at)
                assert (found.status is Status.RACES) == bool(expected.races or expected.transfers)
                outcomes[bool(expected.races)] += 1
    assert outcomes[True] > 50


def test_a_longer_wait_never_adds_a_race() -> None:
    for seed in range(30):
        stream = make(seed)
        before = pairs(verdict(stream.words, stream))
        for at, what, parameter in command_sequence(stream.words):
            if what.endswith("wait") and parameter > 0:
                words = list(stream.words)
                words[at] -= 1 << 16
                after = pairs(verdict(words, stream))
                assert after.races <= before.races
                assert after.transfers <= before.transfers


def test_every_raised_block_dependency_is_classified_as_brute_force_says() -> None:
    """Vela works out how far a kernel may overtake the one before it; letting it go further races or does not."""
    outcomes: Counter[tuple[str, bool]] = Counter()
    for seed in range(40):
        stream = make(seed)
        for at, what, parameter in command_sequence(stream.words):
            if what == "blockdep" and parameter < 3:
                words = list(stream.words)
                words[at] += 1 << 16
                expected = races(words, stream.operations, stream.accelerator)
                found = verdict(words, stream)
                assert pairs(found) == expected, (seed, at)
                memories = {race.first.memory for race in found.orders[0].races if race.first.engine == "kernel writes"}
                outcomes["on chip" if "SHARED" in memories else "", bool(expected.races)] += 1
    assert outcomes["", True] > 15
    assert outcomes["", False] > 0 < outcomes["on chip", True]
