"""Documents damaged at random places: every one is read, refused or rejected, none fails in another way."""

from __future__ import annotations

import copy
import json
import random
from collections import Counter
from collections.abc import Iterator
from contextlib import suppress
from typing import Any

from racefree.engines.check import check
from racefree.errors import InputError, Refused
from racefree.neuron.generate import Options, generate
from racefree.neuron.legality import verify_symbolic
from racefree.neuron.lnc import check_cores
from racefree.neuron.lowering import lower_all
from racefree.neuron.reading import from_value, loads

VALUES: tuple[Any, ...] = (
    None,
    True,
    -1,
    0,
    3,
    2**40,
    2**70,
    1.5,
    "",
    "I-0",
    "ALL",
    "PSUM",
    [],
    [1],
    [[1, 2]],
    {},
    {"kind": "x"},
)


def places(value: Any) -> Iterator[tuple[Any, Any]]:
    """Every (container, key) of a document."""
    items = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, part in list(items):
        yield value, key
        yield from places(part)


def damaged(document: Any, rng: random.Random) -> Any:
    copied = copy.deepcopy(document)
    for _ in range(rng.choice((1, 1, 2, 5))):
        container, key = rng.choice(list(places(copied)))
        try:
            if rng.random() < 0.15:
                del container[key]
            else:
                container[key] = copy.deepcopy(rng.choice(VALUES))
        except (IndexError, KeyError):
            continue
    return copied


def test_damaged_documents_end_in_an_answer_or_an_error_of_ours() -> None:
    rng = random.Random(11)
    ends: Counter[str] = Counter()
    documents = [generate(Options(seed=seed, instructions=8, partitions=4, row_bytes=64, blocks=1 + seed % 2, loop=seed == 3))
                 for seed in range(4)]  # fmt: skip
    for turn in range(700):
        document = damaged(documents[turn % len(documents)], rng)
        try:
            module = from_value(document)
            for program in lower_all(module):
                ends[check(program).status.value] += 1
            if turn % 7 == 0:
                check_cores([module, from_value(documents[0])])
                with suppress(Refused):
                    verify_symbolic(module, lnc_size=2)
        except InputError as error:
            ends[type(error).__name__] += 1
    assert ends["ok"] > 20 < ends["InputError"]
    assert ends["races"] + ends["unsupported"] > 20


def test_text_cut_anywhere_is_an_input_error() -> None:
    text = json.dumps(generate(Options(seed=1, instructions=3, partitions=4, row_bytes=64)))
    rng = random.Random(5)
    for _ in range(200):
        cut = rng.randrange(len(text))
        try:
            loads(text[:cut])
        except InputError:
            continue
        raise AssertionError(f"read {cut} of {len(text)} characters")
