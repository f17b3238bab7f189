"""Code written for a CUDA device, on CPU tensors."""

from __future__ import annotations

import threading
from typing import Any

import pytest

torch = pytest.importorskip("torch")
triton = pytest.importorskip("triton")

import numpy as np  # noqa: E402
import triton.language as tl  # noqa: E402
from torch.testing import assert_close  # noqa: E402

from racefree.graph.launch import Tensor  # noqa: E402
from racefree.triton.capture import capturing  # noqa: E402
from racefree.triton.launches import CapturedLaunch  # noqa: E402

CUDA = torch.device("cuda", 0)


@triton.jit
def double(x, o, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(o + i, 2 * tl.load(x + i, i < n), i < n)


class Double(torch.autograd.Function):  # type: ignore[misc]
    @staticmethod
    def forward(ctx: Any, x: Any) -> Any:
        out = torch.empty_like(x)
        double[(1,)](x, out, x.numel(), BLOCK=16)
        return out

    @staticmethod
    def backward(ctx: Any, gradient: Any) -> Any:
        out = torch.empty(gradient.shape, device="cuda")
        assert gradient.is_cuda
        double[(1,)](gradient, out, gradient.numel(), BLOCK=16)
        return out


@pytest.fixture
def taken() -> Any:
    launches: list[CapturedLaunch] = []
    with capturing(launches.append):
        yield launches


@pytest.mark.parametrize(
    "make",
    [
        lambda: torch.zeros(4, device="cuda"),
        lambda: torch.zeros(4, device=CUDA),
        lambda: torch.zeros(4, device=0),
        lambda: torch.zeros(4).cuda(),
        lambda: torch.zeros(4).cuda(0, non_blocking=True),
        lambda: torch.zeros(4).to("cuda:0"),
        lambda: torch.zeros(4).to("cuda", torch.float32, non_blocking=True),
        lambda: torch.zeros(4, dtype=torch.int32).to(device="cuda", dtype=torch.float32),
        lambda: torch.zeros(4).to(torch.zeros(1, device="cuda")),
        lambda: torch.tensor([0.0] * 4, device="cuda"),
        lambda: torch.as_tensor(np.zeros(4, dtype=np.float32), device="cuda"),
        lambda: torch.zeros(4, device="cuda", pin_memory=False).pin_memory(),
        lambda: torch.rand(4, device="cuda", generator=torch.Generator(device="cuda").manual_seed(1)) * 0,
        lambda: torch.zeros(4).type("torch.cuda.FloatTensor"),
        lambda: torch.nn.Parameter(torch.zeros(4)).to("cuda").detach(),
        lambda: torch.empty(4, device=triton.runtime.driver.active.get_active_torch_device()),
    ],
)
def test_ways_to_the_device(taken: list[CapturedLaunch], make: Any) -> None:
    tensor = make()
    assert tensor.device == CUDA
    assert tensor.device.type == "cuda"
    assert tensor.is_cuda
    assert not tensor.is_cpu
    assert tensor.get_device() == 0
    assert tensor.dtype == torch.float32
    assert tensor.tolist() == [0.0] * 4


def test_modules_and_default_devices(taken: list[CapturedLaunch]) -> None:
    layer = torch.nn.Linear(4, 4).to("cuda")
    assert layer(torch.ones(2, 4, device="cuda")).device == CUDA
    with torch.device("cuda"):
        assert torch.ones(3).device == CUDA
    torch.set_default_device("cuda")
    assert torch.ones(3).device == CUDA
    assert torch.get_default_device() == CUDA


def test_queries_honour_the_target() -> None:
    with capturing(lambda launch: None, target="cuda:90"):
        assert torch.cuda.is_available()
        assert torch.cuda.device_count() == 1
        assert torch.cuda.get_device_capability() == (9, 0)
        assert torch.cuda.get_device_properties("cuda").multi_processor_count == 132
        assert torch.accelerator.current_accelerator() == CUDA
        active = triton.runtime.driver.active
        assert active.get_current_target().arch == 90
        assert active.utils.get_device_properties(active.get_current_device())["multiprocessor_count"] == 132
    with capturing(lambda launch: None, target="hip:gfx942"):
        assert triton.runtime.driver.active.get_current_target().backend == "hip"
        assert torch.version.hip
    assert torch.version.hip is None


def test_streams_events_and_graphs(taken: list[CapturedLaunch]) -> None:
    start, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
    with torch.cuda.stream(torch.cuda.Stream()), torch.cuda.device(0):
        start.record()
        with torch.cuda.graph(torch.cuda.CUDAGraph()):
            double[(1,)](torch.zeros(4), torch.zeros(4), 4, BLOCK=16)
        end.record()
    torch.cuda.synchronize()
    assert start.elapsed_time(end) > 0
    assert torch.cuda.current_stream().cuda_stream == 0
    assert len(taken) == 1


def test_a_benchmark_of_its_own_soon_has_measured_enough(taken: list[CapturedLaunch]) -> None:
    """As `triton.testing.do_bench` does it, copied into a script: so many rounds as fit a time, by five that are timed."""
    start, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
    x, o = torch.zeros(4), torch.zeros(4)
    start.record()
    for _ in range(5):
        double[(1,)](x, o, 4, BLOCK=16)
    end.record()
    torch.cuda.synchronize()
    for _ in range(max(1, int(1000 / (start.elapsed_time(end) / 5)))):
        double[(1,)](x, o, 4, BLOCK=16)
    assert len(taken) == 6


def test_generators_have_the_state_of_a_device(taken: list[CapturedLaunch]) -> None:
    seed, offset = torch.cuda.default_generators[0].get_state().view(torch.int64).tolist()
    assert offset == 0
    generator = torch.Generator(device="cuda").manual_seed(5)
    assert generator.get_state().view(torch.int64).tolist() == [5, 0]
    first = torch.rand(4, device="cuda", generator=generator)
    generator.set_state(torch.tensor([5, 0]).view(torch.uint8))
    assert torch.rand(4, device="cuda", generator=generator).tolist() == first.tolist()
    torch.cuda.set_rng_state(torch.cuda.get_rng_state())
    assert isinstance(seed, int)


def test_moving_a_host_tensor_copies_it(taken: list[CapturedLaunch]) -> None:
    host = torch.zeros(4)
    device = host.cuda()
    assert device.data_ptr() != host.data_ptr()
    assert device.cuda().data_ptr() == device.data_ptr()
    assert device.to("cuda").data_ptr() == device.data_ptr()
    assert (device + 1).to(CUDA) is not device
    assert device.view(2, 2).cuda().data_ptr() == device.data_ptr()
    assert device.cpu().data_ptr() != device.data_ptr()


def test_backward_launches_from_its_own_line(taken: list[CapturedLaunch]) -> None:
    x = torch.ones(4, device="cuda", requires_grad=True)
    Double.apply(x).sum().backward()
    assert [launch.launch_site.function for launch in taken] == ["forward", "backward"]
    assert x.grad.device == CUDA
    x.grad = None
    (gradient,) = torch.autograd.grad(Double.apply(x).sum(), x)
    assert gradient.device == CUDA
    assert len(taken) == 4


def test_hooks_of_backward_see_the_device(taken: list[CapturedLaunch]) -> None:
    seen: list[Any] = []

    def unpack(packed: Any) -> Any:  # as checkpointing does it, to compute again what was not kept
        seen.append(torch.zeros(1, device="cuda").device)
        return Double.apply(packed)

    x = torch.ones(4, device="cuda", requires_grad=True)
    with torch.autograd.graph.saved_tensors_hooks(lambda kept: kept.detach(), unpack):
        y = x * x
    x.register_hook(lambda gradient: seen.append(gradient.device))
    y.sum().backward()
    assert seen == [CUDA] * 3
    assert [launch.launch_site.function for launch in taken] == ["forward", "forward"]


def test_threads_see_the_device(taken: list[CapturedLaunch]) -> None:
    seen: list[Any] = []
    thread = threading.Thread(target=lambda: seen.append(torch.zeros(4, device="cuda").device))
    thread.start()
    thread.join()
    assert seen == [CUDA]


def test_checks_hold_until_a_kernel_is_skipped_and_pass_after(taken: list[CapturedLaunch]) -> None:
    one, two = torch.ones(4, device="cuda"), torch.full((4,), 2.0, device="cuda")
    assert not torch.allclose(one, two)
    with pytest.raises(AssertionError):
        assert_close(one, two)
    with pytest.raises(AssertionError):
        np.testing.assert_allclose(one.numpy(), two.numpy())
    out = torch.empty_like(one)
    double[(1,)](one, out, 4, BLOCK=16)
    assert torch.allclose(out, two)
    assert torch.equal(out, two)
    assert_close(out, two)
    np.testing.assert_allclose(out.numpy(), two.numpy())


def test_benchmarks_run_their_body_once(taken: list[CapturedLaunch]) -> None:
    x = torch.ones(4, device="cuda")

    def run() -> None:
        double[(1,)](x, torch.empty_like(x), 4, BLOCK=16)

    assert triton.testing.do_bench(run) == 1.0
    assert triton.testing.do_bench(run, quantiles=[0.5, 0.2, 0.8]) == [1.0, 1.0, 1.0]
    sizes: list[tuple[int, str]] = []
    bench = triton.testing.Benchmark(
        x_names=["n"],
        x_vals=[16, 32],
        line_arg="who",
        line_vals=["a", "b"],
        line_names=["A", "B"],
        plot_name="p",
        args={},
    )
    triton.testing.perf_report(bench)(lambda n, who: sizes.append((n, who))).run(print_data=True)
    assert sizes == [(16, "a"), (16, "b")]
    assert len(taken) == 2


def test_autocast_and_compile_fall_back(taken: list[CapturedLaunch]) -> None:
    @torch.compile
    def twice(x: Any) -> Any:
        return x * 2

    with torch.autocast("cuda", dtype=torch.bfloat16):
        product = torch.ones(2, 2, device="cuda") @ torch.ones(2, 2, device="cuda")
    assert product.dtype == torch.bfloat16
    assert twice(torch.ones(1, device="cuda")).tolist() == [2.0]


def test_same_tensor_twice_is_one_storage(taken: list[CapturedLaunch]) -> None:
    x = torch.arange(4, device="cuda")
    double[(1,)](x.to("cuda"), x, 4, BLOCK=16)
    facts = taken[0].configs[0].facts
    assert facts is not None
    one, two = facts.arguments["x"], facts.arguments["o"]
    assert isinstance(one, Tensor)
    assert isinstance(two, Tensor)
    assert one.storage is two.storage


def test_custom_operators_for_the_device() -> None:
    launches: list[CapturedLaunch] = []
    with capturing(launches.append):

        @torch.library.custom_op("racefree_tests::doubled", mutates_args=(), device_types="cuda")
        def doubled(x: torch.Tensor) -> torch.Tensor:
            out = torch.empty(x.shape, device="cuda")
            double[(1,)](x, out, x.numel(), BLOCK=16)
            return out

        library = torch.library.Library("racefree_tests", "FRAGMENT")
        library.define("twice(Tensor x) -> Tensor")
        library.impl("twice", lambda x: doubled(doubled(x)), "CUDA")
        assert doubled(torch.ones(4, device="cuda")).device == CUDA
        torch.ops.racefree_tests.twice(torch.ones(4, device="cuda"))
        library.define("either(Tensor x) -> Tensor")
        library.impl("either", lambda x: x + 1, "CPU")
        library.impl("either", doubled, "CUDA")
        torch.ops.racefree_tests.either(torch.ones(4, device="cuda"))
    assert len(launches) == 4
    assert torch.ops.racefree_tests.either(torch.ones(4)).tolist() == [2.0] * 4
    with pytest.raises(NotImplementedError, match="no kernel for CPU tensors"):
        torch.ops.racefree_tests.twice(torch.ones(4))


def test_tensors_saved_from_the_device_load(taken: list[CapturedLaunch], tmp_path: Any) -> None:
    torch.save(torch.arange(3, device="cuda"), tmp_path / "x.pt")
    assert torch.load(tmp_path / "x.pt", map_location="cuda:0").tolist() == [0, 1, 2]


@pytest.mark.parametrize("given", [{"out_dtype": torch.float32}, torch.float32], ids=["by name", "by position"])
@pytest.mark.parametrize("batched", [False, True])
@pytest.mark.parametrize("added", [False, True])
def test_a_product_may_widen_its_result(given: Any, batched: bool, added: bool, taken: list[CapturedLaunch]) -> None:
    shape = (2, 3, 3) if batched else (3, 3)
    left, right, more = (torch.randn(shape, dtype=torch.bfloat16, device="cuda") for _ in range(3))
    function = {
        (False, False): torch.mm,
        (False, True): torch.addmm,
        (True, False): torch.bmm,
        (True, True): torch.baddbmm,
    }[batched, added]
    operands = (more, left, right) if added else (left, right)
    by_position, by_name = ((), given) if isinstance(given, dict) else ((given,), {})
    found = function(*operands, *by_position, **by_name)
    exact = left.float() @ right.float() + (more.float() if added else 0)
    assert found.dtype is torch.float32
    assert found.is_cuda
    assert_close(found, exact, rtol=1e-5, atol=1e-5)


def test_a_widened_product_of_what_was_not_computed_is_not_known(taken: list[CapturedLaunch]) -> None:
    made = torch.zeros(16, device="cuda")
    double[(1,)](torch.ones(16, device="cuda"), made, 16, BLOCK=16)
    product = torch.mm(made.view(4, 4).bfloat16(), torch.ones(4, 4, device="cuda").bfloat16(), out_dtype=torch.float32)
    double[(1,)](product.to(torch.int32).view(16), torch.zeros(16, dtype=torch.int32, device="cuda"), 16, BLOCK=16)
    facts = taken[-1].configs[0].facts
    assert facts is not None
    x = facts.arguments["x"]
    assert isinstance(x, Tensor)
    assert x.storage.contents is None
    assert "did not run" in x.storage.why_unknown
