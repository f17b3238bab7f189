"""Taking one launch: what is bound, where it came from, and that the kernel did not run."""

from __future__ import annotations

import inspect
import threading
from typing import Any

import pytest

torch = pytest.importorskip("torch")
triton = pytest.importorskip("triton")

import triton.language as tl  # noqa: E402
from triton.tools.tensor_descriptor import TensorDescriptor  # noqa: E402

from racefree.errors import InputError  # noqa: E402
from racefree.graph.launch import Descriptor, LaunchFacts, Scalar, Tensor  # noqa: E402
from racefree.triton import hostcompile  # noqa: E402
from racefree.triton.capture import capture_one, capturing  # noqa: E402
from racefree.triton.launches import CapturedLaunch  # noqa: E402

SCALE = tl.constexpr(3)


@triton.jit
def copy(x, o, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(o + i, tl.load(x + i, i < n), i < n)


@triton.heuristics({"BLOCK": lambda args: 2 * args["n"]})
@triton.jit
def copy_all(x, o, n, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    tl.store(o + i, tl.load(x + i, i < n), i < n)


@triton.jit
def tuple_sum(args, o):
    tl.store(o, tl.load(args[0]) + args[1])


@triton.jit
def optional(x, o, bias):
    v = tl.load(x)
    if bias is not None:
        v += tl.load(bias)
    tl.store(o, v)


@triton.jit
def move(desc, o, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    tl.store(o + i[:, None] * BLOCK + i[None, :], desc.load([0, 0]))


@triton.jit
def scaled(o):
    tl.store(o, SCALE)


@triton.jit
def misspelled(o):
    tl.store(o, undefined_name)  # noqa: F821


@triton.jit
def fp8(o):
    tl.store(o, tl.load(o).to(tl.float8e4nv).to(tl.float32))


def take(kernel: Any, *args: Any, grid: Any = (4,), target: str | None = None, **kwargs: Any) -> CapturedLaunch:
    return capture_one(kernel, args, kwargs, grid, target)


def facts_of(launch: CapturedLaunch) -> LaunchFacts:
    (config,) = launch.configs
    assert config.failure is None
    assert config.facts is not None
    return config.facts


def tensors() -> tuple[Any, Any]:
    return torch.arange(100, dtype=torch.int32), torch.full((100,), 7, dtype=torch.int32)


def test_a_launch_is_taken_and_the_kernel_does_not_run() -> None:
    x, o = tensors()
    launch = take(copy, x, o, 100, BLOCK=32)
    facts = facts_of(launch)
    assert o.tolist() == [7] * 100
    assert (facts.kernel, facts.grid, facts.constants) == ("copy", (4, 1, 1), {"BLOCK": 32})
    assert (facts.num_warps, facts.warp_size, facts.num_ctas, facts.target) == (4, 32, 1, "cuda:80")
    assert facts.triton_version == triton.__version__
    assert list(facts.arguments) == ["x", "o", "n"]
    assert facts.arguments["n"] == Scalar(100)
    source = facts.arguments["x"]
    assert isinstance(source, Tensor)
    assert (source.address, source.element_bytes, source.dtype) == (x.data_ptr(), 4, "int32")
    assert (source.shape, source.strides) == ((100,), (1,))
    assert (source.storage.address, source.storage.nbytes) == (x.data_ptr(), 400)
    assert source.storage.contents is not None
    assert source.storage.contents.view("int32").tolist() == list(range(100))
    module = launch.configs[0].module
    assert module is not None
    assert '"tt.store"' in module.text
    assert module.census is not None
    assert module.census["tt.store", 3, 0, 0] == 1


def test_sites_name_the_definition_and_the_launching_line() -> None:
    taken: list[CapturedLaunch] = []
    x, o = tensors()
    with capturing(taken.append):
        copy[(4,)](x, o, 100, BLOCK=32)
    (launch,) = taken
    lines, start = inspect.getsourcelines(test_sites_name_the_definition_and_the_launching_line)
    here = start + next(i for i, line in enumerate(lines) if "copy[(4,)]" in line)
    assert (launch.launch_site.file, launch.launch_site.line) == (__file__, here)
    assert launch.launch_site.function == "test_sites_name_the_definition_and_the_launching_line"
    assert (launch.site.file, launch.site.function) == (__file__, "copy")
    assert inspect.getsource(inspect.getmodule(copy.fn)).splitlines()[launch.site.line - 1].startswith("def copy(")


@pytest.mark.parametrize(
    "launch",
    [
        lambda x, o: copy[(2, 3)](x, o, 50, 32),
        lambda x, o: copy[(2, 3)](x=x, o=o, n=50, BLOCK=32),
        lambda x, o: copy[lambda meta: (meta["BLOCK"] // 16, 3)](x, o, n=50, BLOCK=32),
        lambda x, o: copy.run(x, o, 50, 32, grid=(2, 3), warmup=False),
        lambda x, o: copy.warmup(x, o, 50, BLOCK=32, grid=(1,))[(2, 3)](x, o, 50, 32),
        lambda x, o: copy.warmup(x, o, 50, BLOCK=32, grid=(1,)).run(2, 3, 1, 0, 0, (), None, None, None, x, o, 50, 32),
    ],
    ids=["positional", "keyword", "callable grid", "run", "compiled kernel", "compiled kernel run"],
)
def test_every_way_to_launch_is_the_same_launch(launch: Any) -> None:
    taken: list[CapturedLaunch] = []
    x, o = tensors()
    with capturing(taken.append):
        launch(x, o)
    assert len(taken) == 1
    facts = facts_of(taken[0])
    assert facts.grid == (2, 3, 1)
    assert facts.arguments["n"] == Scalar(50)
    assert facts.constants == {"BLOCK": 32}


def test_warmup_alone_is_no_launch() -> None:
    taken: list[CapturedLaunch] = []
    x, o = tensors()
    with capturing(taken.append):
        copy.warmup(x, o, 50, BLOCK=32, grid=(1,))
    assert taken == []


def test_heuristics_fill_constants() -> None:
    x, o = tensors()
    assert facts_of(take(copy_all, x, o, 64)).constants == {"BLOCK": 128}


def test_an_argument_equal_to_one_is_a_constant() -> None:
    x, o = tensors()
    facts = facts_of(take(copy, x, o, 1, BLOCK=32))
    assert facts.constants == {"n": 1, "BLOCK": 32}
    assert list(facts.arguments) == ["x", "o"]


def test_tuples_are_dotted_and_none_is_a_constant() -> None:
    x, o = tensors()
    assert list(facts_of(take(tuple_sum, (x, 5), o)).arguments) == ["args.0", "args.1", "o"]
    assert facts_of(take(optional, x, o, None)).constants == {"bias": None}


def test_options_reach_the_facts() -> None:
    x, o = tensors()
    facts = facts_of(take(copy, x, o, 100, BLOCK=32, num_warps=8, target="hip:gfx942"))
    assert (facts.num_warps, facts.warp_size, facts.target) == (8, 64, "hip:gfx942")


def test_views_share_their_storage() -> None:
    x = torch.arange(100, dtype=torch.int32)
    facts = facts_of(take(copy, x[10:], x.view(10, 10).t(), 5, BLOCK=32))
    source, out = facts.arguments["x"], facts.arguments["o"]
    assert isinstance(source, Tensor)
    assert isinstance(out, Tensor)
    assert source.storage is out.storage
    assert source.address - out.address == 40
    assert (out.shape, out.strides) == ((10, 10), (1, 10))


def test_an_empty_tensor_and_an_empty_grid() -> None:
    facts = facts_of(take(copy, torch.zeros(0), torch.zeros(0), 0, BLOCK=32, grid=(0,)))
    source = facts.arguments["x"]
    assert isinstance(source, Tensor)
    assert (source.shape, source.storage.nbytes) == ((0,), 0)
    assert facts.grid == (0, 1, 1)


def test_meta_tensors_have_room_of_their_own_and_no_contents() -> None:
    x = torch.empty(1 << 40, dtype=torch.int32, device="meta")
    facts = facts_of(take(copy, x[8:], torch.empty(1 << 40, dtype=torch.int32, device="meta"), 100, BLOCK=32))
    source, out = facts.arguments["x"], facts.arguments["o"]
    assert isinstance(source, Tensor)
    assert isinstance(out, Tensor)
    assert source.address == source.storage.address + 32
    assert source.storage.nbytes == 1 << 42
    assert out.storage.address >= source.storage.address + source.storage.nbytes
    assert source.storage.contents is None
    assert source.storage.why_unknown == "a meta tensor has no contents"


class Borrowed:
    """What some libraries pass for a tensor: a pointer, a dtype, and a shape and a tensor or not."""

    def __init__(self, base: Any, shape: tuple[int, ...] | None = None, *, holds: bool = False) -> None:
        self._address, self.dtype = base.data_ptr(), base.dtype
        if shape is not None:
            self.shape = shape
        if holds:
            self._base = base

    def data_ptr(self) -> int:
        return int(self._address)


def test_duck_typed_tensors() -> None:
    x, o = tensors()
    source = facts_of(take(copy, Borrowed(x, (10, 10)), o, 100, BLOCK=32)).arguments["x"]
    assert isinstance(source, Tensor)
    assert (source.address, source.strides, source.storage.nbytes) == (x.data_ptr(), (10, 1), 400)
    assert source.storage.why_unknown == "a Borrowed argument gives no access to its contents"
    inside = facts_of(take(copy, Borrowed(o[5:], (4,)), o, 100, BLOCK=32)).arguments
    assert isinstance(inside["x"], Tensor)
    assert isinstance(inside["o"], Tensor)
    assert inside["x"].storage is inside["o"].storage
    (config,) = take(copy, Borrowed(x), o, 100, BLOCK=32).configs
    assert config.failure is not None
    assert config.failure.kind == "unknown-extent"


def test_a_stand_in_that_holds_its_tensor_has_its_contents() -> None:
    x, o = tensors()
    source = facts_of(take(copy, Borrowed(x[2:], (4, 2), holds=True), o, 100, BLOCK=32)).arguments["x"]
    assert isinstance(source, Tensor)
    assert (source.address, source.shape, source.strides) == (x.data_ptr() + 8, (4, 2), (2, 1))
    assert (source.storage.address, source.storage.nbytes) == (x.data_ptr(), 400)
    assert source.storage.contents is not None


class FakeTensor(torch.Tensor):  # type: ignore[misc]
    """Named as torch's own, whose module takes seconds to import."""


def test_a_fake_tensor_is_refused() -> None:
    fake = torch.zeros(8).as_subclass(FakeTensor)
    (config,) = take(copy, fake, torch.zeros(8), 8, BLOCK=8).configs
    assert config.failure is not None
    assert config.failure.kind == "fake-tensor"


def test_a_reinterpreted_tensor_has_the_dtype_the_kernel_sees() -> None:
    x, o = tensors()
    source = facts_of(take(copy, triton.reinterpret(x, tl.float32), o, 100, BLOCK=32)).arguments["x"]
    assert isinstance(source, Tensor)
    assert (source.dtype, source.element_bytes, source.address) == ("float32", 4, x.data_ptr())


@pytest.mark.parametrize("target", ["cuda:80", "cuda:90"])
def test_host_descriptors(target: str) -> None:
    x = torch.zeros(64, 64)
    described = facts_of(take(move, TensorDescriptor.from_tensor(x, [16, 16]), x, BLOCK=16, target=target))
    argument = described.arguments["desc"]
    assert isinstance(argument, Descriptor)
    assert (argument.shape, argument.strides, argument.block_shape) == ((64, 64), (64, 1), (16, 16))
    assert argument.base.address == x.data_ptr()
    assert argument.padding == "zero"


def test_a_kernel_that_needs_another_target_says_which() -> None:
    (config,) = take(fp8, torch.zeros(1)).configs
    assert config.module is None
    assert config.failure is not None
    assert config.failure.kind == "compile-failed"
    assert "--target cuda:90" in config.failure.reason
    assert "RACEFREE_TARGET=cuda:90" in config.failure.reason
    assert facts_of(take(fp8, torch.zeros(1), target="cuda:90")).target == "cuda:90"


def test_a_kernel_that_compiles_nowhere_says_so() -> None:
    (config,) = take(misspelled, torch.zeros(1)).configs
    assert config.failure is not None
    assert config.failure.kind == "compile-failed"
    assert "any other target" in config.failure.reason
    assert "undefined_name is not defined" in config.failure.reason
    assert config.failure.source is not None
    lines = inspect.getsource(inspect.getmodule(copy.fn)).splitlines()
    assert "undefined_name" in lines[config.failure.source.line - 1]


def test_a_compile_that_cannot_run(monkeypatch: pytest.MonkeyPatch) -> None:
    def missing(*_: Any) -> Any:
        raise OSError("libfoo.so: cannot open shared object file")

    monkeypatch.setattr(hostcompile, "_lower", missing)
    (config,) = take(copy, *tensors(), 100, BLOCK=32).configs
    assert config.failure is not None
    assert config.failure.kind == "host-compile-unavailable"
    assert "libfoo.so" in config.failure.reason


def test_what_is_no_kernel() -> None:
    (config,) = take(len, torch.zeros(1)).configs
    assert config.failure is not None
    assert config.failure.kind == "no-compiled-kernel"


def test_a_kernel_of_the_interpreter_is_not_run(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(triton.knobs.runtime, "interpret", True)
    interpreted = triton.jit(copy.fn)
    x, o = tensors()
    (config,) = take(interpreted, x, o, 100, BLOCK=32).configs
    assert config.failure is not None
    assert config.failure.kind == "no-compiled-kernel"
    assert o.tolist() == [7] * 100


def test_arguments_that_do_not_fit_are_input_errors() -> None:
    with pytest.raises(InputError, match="launching copy failed: TypeError"):
        take(copy, torch.zeros(4))


def _held() -> list[Any]:
    from triton.runtime.autotuner import Autotuner
    from triton.runtime.driver import driver
    from triton.runtime.jit import JITCallable, JITFunction, KernelInterface

    compilers = [triton.compile, triton.compiler.compile, triton.compiler.compiler.compile]
    runs = [JITFunction.run, Autotuner.run, Autotuner._bench, KernelInterface.__getitem__]
    seams = [driver._active, vars(JITCallable)["cache_key"]]
    kernel = [copy.device_caches, copy.hash, vars(copy).get("compile")]
    cuda = [torch.cuda.is_available, torch.cuda.Stream, torch.version.cuda, torch.version.hip]
    others = [torch.Generator, torch.compile, torch.set_default_device, threading.Thread.start]
    checks = [triton.testing.do_bench, torch.testing._comparison.not_close_error_metas]
    return [*compilers, *runs, *seams, *kernel, *cuda, *others, *checks]


def test_everything_is_undone() -> None:
    before = _held()
    x, o = tensors()

    def script() -> None:
        with capturing(lambda launch: None):
            copy[(4,)](x, o, 100, BLOCK=32)
            raise RuntimeError("the script fails")

    with pytest.raises(RuntimeError, match="the script fails"):
        script()
    assert all(a is b for a, b in zip(before, _held(), strict=True))
    assert not torch.cuda.is_available()
    with pytest.raises(RuntimeError, match="active drivers"):
        copy[(4,)](x, o, 100, BLOCK=32)


def test_an_inner_capture_takes_the_launches_of_its_block() -> None:
    outer: list[CapturedLaunch] = []
    inner: list[CapturedLaunch] = []
    x, o = tensors()
    with capturing(outer.append):
        copy[(1,)](x, o, 100, BLOCK=32)
        with capturing(inner.append, target="cuda:90"):
            copy[(2,)](x, o, 100, BLOCK=32)
        copy[(3,)](x, o, 100, BLOCK=32)
    assert [facts_of(launch).grid[0] for launch in outer] == [1, 3]
    assert [(facts_of(launch).grid[0], facts_of(launch).target) for launch in inner] == [(2, "cuda:90")]


def test_launches_from_several_threads() -> None:
    taken: list[CapturedLaunch] = []
    failures: list[BaseException] = []

    def work(programs: int) -> None:
        try:
            for _ in range(5):
                copy[(programs,)](torch.zeros(64, device="cuda"), torch.zeros(64, device="cuda"), 64, BLOCK=32)
        except BaseException as error:
            failures.append(error)

    with capturing(taken.append):
        threads = [threading.Thread(target=work, args=(n,)) for n in (1, 2, 3)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    assert failures == []
    assert sorted(facts_of(launch).grid[0] for launch in taken) == [1] * 5 + [2] * 5 + [3] * 5


def test_a_global_that_changes_between_launches_is_triton_s_error(monkeypatch: pytest.MonkeyPatch) -> None:
    with capturing(lambda launch: None):
        scaled[(1,)](torch.zeros(1))
        monkeypatch.setitem(globals(), "SCALE", tl.constexpr(4))
        with pytest.raises(RuntimeError, match="SCALE has changed"):
            scaled[(1,)](torch.zeros(1))
    # Forgotten at exit: the next capture compiles with the value of now.
    module = take(scaled, torch.zeros(1)).configs[0].module
    assert module is not None
    assert "4.000000e+00" in module.text
