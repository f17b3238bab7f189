"""Contents of integer tensors: copied before the launch, and unknown where a skipped kernel would have written."""

from __future__ import annotations

from typing import Any

import pytest

torch = pytest.importorskip("torch")
triton = pytest.importorskip("triton")

import numpy as np  # noqa: E402
import triton.language as tl  # noqa: E402

import racefree  # noqa: E402
from racefree.graph.launch import Storage, Tensor  # noqa: E402
from racefree.triton.capture import Capture, capturing  # noqa: E402
from racefree.triton.launches import CapturedLaunch  # noqa: E402
from racefree.verdict import Status  # noqa: E402


@triton.jit
def writer(table, out):
    tl.store(out + tl.program_id(0), tl.load(table))


@triton.jit
def reader(table, out):
    tl.store(out + tl.load(table), 1.0)


@triton.jit
def misspelled(table, parts):
    tl.store(table, undefined_name)  # noqa: F821


@triton.jit
def through_integer(address, out):
    tl.store(out, tl.load(address.to(tl.pointer_type(tl.float32))))


@triton.jit
def scatter(table, out):
    tl.store(out + tl.load(table + tl.program_id(0)), 1.0)


@triton.jit
def into_neighbour(a, b):
    distance = (b.to(tl.int64) - a.to(tl.int64)) // 4
    tl.store(a + distance, 3)


class Session:
    """Takes launches, and says that each writes its `out`."""

    def __init__(self, *, tells: bool = True) -> None:
        self.launches: list[CapturedLaunch] = []
        self.tells = tells
        self.capture: Capture

    def __call__(self, launch: CapturedLaunch) -> None:
        self.launches.append(launch)
        if self.tells and launch.configs[0].facts is not None:
            self.capture.mark_written([storage(launch, "out").address])


def storage(launch: CapturedLaunch, name: str) -> Storage:
    facts = launch.configs[0].facts
    assert facts is not None
    argument = facts.arguments[name]
    assert isinstance(argument, Tensor)
    return argument.storage


def seen(tensor: Any, session: Session) -> list[int] | str:
    """What a launch that reads `tensor` now is told of its contents."""
    reader[(1,)](tensor, torch.zeros(4))
    found = storage(session.launches[-1], "table")
    if found.contents is None:
        return found.why_unknown
    return found.contents.view(str(tensor.dtype).removeprefix("torch.")).tolist()


@pytest.fixture
def session() -> Any:
    session = Session()
    with capturing(session) as session.capture:
        yield session


ADDRESS = 1 << 40
"""Of no tensor, and wide as an address on a GPU: Triton takes a smaller integer as one of 32 bits, which is no address."""

STALE = "an earlier launch of writer, which did not run, writes it"


def test_contents_are_those_before_the_launch(session: Session) -> None:
    table = torch.tensor([3, 1, 2])
    reader[(1,)](table, torch.zeros(4))
    table.zero_()
    found = storage(session.launches[0], "table")
    assert found.contents is not None
    assert found.contents.view("int64").tolist() == [3, 1, 2]
    assert not found.contents.flags.writeable


@pytest.mark.parametrize("dtype", ["bool", "int8", "uint8", "int16", "int32", "int64"])
def test_integer_and_bool_tensors_of_every_width(session: Session, dtype: str) -> None:
    assert seen(torch.tensor([1, 0, 1]).to(getattr(torch, dtype)), session) == [1, 0, 1]


def test_a_view_brings_the_whole_storage(session: Session) -> None:
    assert seen(torch.arange(6)[4:], session) == [0, 1, 2, 3, 4, 5]


def test_float_contents_are_not_taken(session: Session) -> None:
    reader[(1,)](torch.tensor([1]), torch.zeros(4, dtype=torch.bfloat16))
    found = storage(session.launches[0], "out")
    assert (found.contents, found.why_unknown) == (None, "float dtype bfloat16")


def test_unchanged_contents_are_copied_once(session: Session) -> None:
    table = torch.tensor([3, 1, 2])
    for _ in range(2):
        seen(table, session)
    table.numpy()[0] = 9  # no version counter sees this
    assert seen(table, session) == [9, 1, 2]
    first, second, third = (storage(launch, "table").contents for launch in session.launches)
    assert first is second
    assert first is not None
    assert first.view("int64").tolist() == [3, 1, 2]
    assert third is not first


def test_the_cap_leaves_out_what_does_not_fit() -> None:
    session = Session()
    with capturing(session, contents_cap_bytes=100) as session.capture:
        reader[(1,)](torch.zeros(10, dtype=torch.int64), torch.zeros(8, dtype=torch.int32))
    assert storage(session.launches[0], "table").contents is not None
    out = storage(session.launches[0], "out")
    assert out.contents is None
    assert out.why_unknown == "its 32 bytes do not fit under the snapshot cap (20 of 100 bytes are left)"


def test_what_a_skipped_kernel_writes_is_unknown(session: Session) -> None:
    table, out = torch.tensor([1]), torch.zeros(4, dtype=torch.int32)
    writer[(4,)](table, out)
    assert seen(out, session) == STALE
    assert seen(table, session) == [1]


def test_a_session_that_says_nothing_leaves_nothing_known() -> None:
    session = Session(tells=False)
    with capturing(session) as session.capture:
        table = torch.tensor([1])
        writer[(4,)](table, torch.zeros(4))
        assert seen(table, session) == STALE


@pytest.mark.parametrize(
    "derive",
    [
        lambda out: out + 1,
        lambda out: out.cumsum(0),
        lambda out: (out.float() > 0).to(torch.int32),
        lambda out: torch.cat([out, torch.zeros(1, dtype=torch.int32)]),
        lambda out: out.sort().indices,
        lambda out: torch.zeros(4, dtype=torch.int32).add_(out),
        lambda out: torch.zeros(4, dtype=torch.int32).index_copy_(0, torch.arange(4), out),
        lambda out: torch.max(out, torch.zeros(4, dtype=torch.int32), out=torch.zeros(4, dtype=torch.int32)),
        lambda out: out[1:],
        lambda out: out.to(torch.int64),
        lambda out: out.cpu().cuda(),
        lambda out: out.clone(),
    ],
)  # fmt: skip
def test_what_torch_computes_from_it_is_unknown(session: Session, derive: Any) -> None:
    out = torch.zeros(4, dtype=torch.int32, device="cuda")
    writer[(4,)](torch.tensor([1]), out)
    assert seen(derive(out), session) == STALE


def test_assigning_unknown_elements_spoils_the_tensor(session: Session) -> None:
    out, table = torch.zeros(4, dtype=torch.int32), torch.zeros(8, dtype=torch.int32)
    writer[(4,)](torch.tensor([1]), out)
    table[2:6] = out
    assert seen(table, session) == STALE


@pytest.mark.parametrize(
    "derive",
    [
        lambda out: torch.zeros_like(out),
        lambda out: out.new_full((4,), 0),
        lambda out: out.zero_(),
        lambda out: out.copy_(torch.zeros(4)),
        lambda out: out.fill_(0),
        lambda out: torch.zeros(out.shape, dtype=out.dtype),
    ],
)
def test_what_torch_overwrites_is_known(session: Session, derive: Any) -> None:
    out = torch.full((4,), 7, dtype=torch.int32)
    writer[(4,)](torch.tensor([1]), out)
    assert seen(derive(out), session) == [0, 0, 0, 0]


def offsets_by_parts(out: Any) -> Any:
    out[0] = 0
    out[1:] = torch.tensor([5, 7, 9])
    return out


def offsets_by_cumsum(out: Any) -> Any:
    out[:1].zero_()
    torch.cumsum(torch.tensor([5, 2, 2], dtype=torch.int32), 0, out=out[1:])
    return out


def offsets_by_steps(out: Any) -> Any:
    for i, value in enumerate([0, 5, 7, 9]):
        out[i] = value
    return out


@pytest.mark.parametrize("fill", [offsets_by_parts, offsets_by_cumsum, offsets_by_steps])
@pytest.mark.parametrize("start", ["uninitialised", "stale"])
def test_what_torch_overwrites_by_parts_is_known_once_all_is(session: Session, fill: Any, start: str) -> None:
    out = torch.empty(4, dtype=torch.int32)
    if start == "stale":
        out.zero_()
        writer[(4,)](torch.tensor([1]), out)
    assert seen(fill(out), session) == [0, 5, 7, 9]


@pytest.mark.parametrize(
    "fill",
    [
        lambda out: out[:3].zero_(),
        lambda out: (out[:2].zero_(), out[1:3].zero_()),
        lambda out: out[::2].zero_(),
        lambda out: (out[:2].zero_(), out[2:].copy_(out[:2] + out[2:])),
        lambda out: (out[:2].zero_(), out.add_(1), out[2:].zero_()),
        lambda out: out.add_(1),
        lambda out: out.masked_fill_(out > 0, 0),
        lambda out: out.scatter_(0, torch.tensor([0, 1]), 0),
    ],
)
def test_a_partial_overwrite_leaves_the_rest_unknown(session: Session, fill: Any) -> None:
    out = torch.zeros(4, dtype=torch.int32)
    writer[(4,)](torch.tensor([1]), out)
    fill(out)
    assert seen(out, session) == STALE


def test_overwriting_with_unknown_values_does_not_help(session: Session) -> None:
    out, other = torch.zeros(4, dtype=torch.int32), torch.zeros(4, dtype=torch.int32)
    writer[(4,)](torch.tensor([1]), out)
    assert seen(other.copy_(out), session) == STALE


def test_gradients_after_a_skipped_kernel_are_unknown(session: Session) -> None:
    leaf = torch.ones(4, requires_grad=True)
    writer[(4,)](torch.tensor([1]), torch.zeros(4))
    (leaf * 2).sum().backward()
    assert seen((leaf.grad > 0).to(torch.int32), session) == "autograd computed it after a launch that did not run"


def test_uninitialised_memory_is_unknown_and_reads_as_zero(session: Session) -> None:
    table = torch.empty(4, dtype=torch.int64, device="cuda")
    assert table.tolist() == [0, 0, 0, 0]
    assert seen(table, session) == "it is uninitialised memory"
    assert seen(table.fill_(1), session) == [1, 1, 1, 1]


def test_growing_a_tensor_leaves_it_unknown(session: Session) -> None:
    assert seen(torch.ones(2, dtype=torch.int64).resize_(4), session) == "it is uninitialised memory"


def test_a_new_allocation_at_an_old_address_is_known(session: Session) -> None:
    out = torch.zeros(1 << 10, dtype=torch.int64)
    address = out.data_ptr()
    writer[(4,)](torch.tensor([1]), out)
    session.launches.clear()
    del out
    kept = []
    for _ in range(1000):
        kept.append(torch.full((1 << 10,), 3))
        if kept[-1].data_ptr() == address:
            assert set(seen(kept[-1], session)) == {3}
            return
    pytest.skip("the allocator did not give the address out again")


def test_memory_borrowed_from_numpy_stays_unknown(session: Session) -> None:
    memory = np.zeros(4, dtype=np.int64)
    writer[(4,)](torch.tensor([1]), torch.from_numpy(memory))
    assert seen(torch.from_numpy(memory), session) == STALE
    assert seen(torch.from_numpy(memory[2:]), session) == STALE
    torch.from_numpy(memory).zero_()
    assert seen(torch.from_numpy(memory), session) == [0, 0, 0, 0]


def test_memory_borrowed_from_another_tensor_is_as_unknown_as_that(session: Session) -> None:
    tensor, apart = torch.zeros(4, dtype=torch.int64), torch.ones(4, dtype=torch.int64)
    writer[(4,)](torch.tensor([1]), tensor)
    assert seen(torch.from_dlpack(tensor), session) == STALE
    assert seen(torch.from_dlpack(apart), session) == [1, 1, 1, 1]


def test_a_launch_that_moves_a_pointer_by_a_distance_writes_more_than_one_argument() -> None:
    a, b, out = torch.zeros(4, dtype=torch.int32), torch.arange(4, dtype=torch.int32), torch.zeros(8)
    with racefree.trace(racefree.RaceDetector(compile=True)):
        into_neighbour[(1,)](a, b)
        scatter[(4,)](b, out)
    first, second = racefree.launches[-2:]
    assert first.verdict.status is Status.OK
    assert second.verdict.status is Status.UNSUPPORTED


def test_a_launch_that_does_not_compile_may_write_all_it_was_given(session: Session) -> None:
    table, (inner, other) = torch.tensor([1]), (torch.tensor([2]), torch.tensor([3]))
    misspelled[(1,)](table, (inner, 4))
    assert seen(table, session) == "an earlier launch of misspelled, which did not run, writes it"
    assert seen(inner, session) == "an earlier launch of misspelled, which did not run, writes it"
    assert seen(other, session) == [3]


def test_a_launch_that_makes_pointers_may_write_anywhere(session: Session) -> None:
    unrelated = torch.tensor([2])
    through_integer[(1,)](ADDRESS, torch.zeros(1))
    why = "an earlier launch of through_integer, which did not run, may write anywhere"
    assert seen(unrelated, session) == why


def test_what_torch_makes_after_a_launch_that_may_write_anywhere_is_known(session: Session) -> None:
    """A step of an optimiser that takes its tensors from a table of pointers must not hide all that comes after it."""
    old, other, lent = torch.tensor([1, 2]), torch.tensor([3]), np.array([4])
    sparse = torch.sparse_csr_tensor(torch.tensor([0, 1]), torch.tensor([0]), torch.tensor([5]))
    through_integer[(1,)](ADDRESS, torch.zeros(1))
    why = "an earlier launch of through_integer, which did not run, may write anywhere"
    new = torch.tensor([5, 6], device="cuda")
    assert seen(new, session) == [5, 6]
    assert seen(new.cumsum(0), session) == [5, 11]
    assert seen(torch.tensor([7]).cuda(), session) == [7]
    assert seen(torch.zeros_like(old), session) == [0, 0]
    for unknown in (old, other, old.clone(), old.cuda(), torch.cat([new, old]), new + old, torch.from_numpy(lent)):
        assert seen(unknown, session) == why
    assert seen(sparse.crow_indices(), session) == why
    old[:1] = 8
    assert seen(old, session) == why
    old.fill_(9)
    assert seen(old, session) == [9, 9]
    new.copy_(torch.cat([other, other]))
    assert seen(new, session) == why
    through_integer[(1,)](ADDRESS, torch.zeros(1))
    assert seen(old, session) == why


def test_reading_an_unknown_value_on_the_host_is_noted_once(session: Session) -> None:
    out = torch.zeros(4, dtype=torch.int32)
    writer[(4,)](torch.tensor([1]), out)
    for _ in range(2):
        if out.max().item() > 0:
            break
        reader[(1,)](torch.tensor([1]), torch.zeros(4))
    assert session.launches[0].notes == ()
    (note,) = session.launches[1].notes
    assert note.startswith(f"a value was read at {__file__}:")
    assert note.endswith(STALE)
    assert session.launches[2].notes == ()


def test_tensors_without_a_version_count(session: Session) -> None:
    with torch.inference_mode():
        table, other = torch.zeros(4, dtype=torch.int32), torch.zeros(4, dtype=torch.int32)
        out = torch.zeros(4, dtype=torch.int32)
        writer[(4,)](torch.tensor([1]), out)
        assert seen(out + table, session) == STALE
        assert seen(table, session) == [0, 0, 0, 0]
        table += out
        other[1:] = out[1:]
        assert seen(table, session) == STALE
        assert seen(other, session) == STALE
