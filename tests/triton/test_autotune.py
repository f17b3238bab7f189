"""Autotuned launches: every config Triton would try, with the hooks it would run."""

from __future__ import annotations

from typing import Any

import pytest

torch = pytest.importorskip("torch")
triton = pytest.importorskip("triton")

import triton.language as tl  # noqa: E402
from triton.language.extra.cuda import num_warps  # noqa: E402
from triton.runtime.autotuner import Autotuner  # noqa: E402
from triton.tools.tensor_descriptor import TensorDescriptor  # noqa: E402

from racefree.graph.launch import Descriptor, Tensor  # noqa: E402
from racefree.triton.capture import capture_one, capturing  # noqa: E402
from racefree.triton.launches import CapturedConfig, CapturedLaunch  # noqa: E402


def configs(
    blocks: tuple[int, ...], warps: tuple[int, ...] = (4,), stages: tuple[int, ...] = (2,), **kwargs: Any
) -> Any:
    return [
        triton.Config({"BLOCK": b}, num_warps=w, num_stages=s, **kwargs) for b in blocks for w in warps for s in stages
    ]


def body(x, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(x + i, tl.load(x + i, i < n) + 1, i < n)


def body_reading_warps(x, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(x + i, num_warps(), i < n)


def body_of_small_blocks(x, n, BLOCK: tl.constexpr):
    tl.static_assert(BLOCK <= 64)
    tl.store(x + tl.arange(0, BLOCK), 1)


def body_of_descriptor(desc, n, BLOCK: tl.constexpr):
    desc.store([tl.program_id(0) * BLOCK], tl.zeros([BLOCK], tl.float32))


def ints(n: int = 128) -> Any:
    return torch.arange(n, dtype=torch.int32)


def blocks_and_warps(launch: CapturedLaunch) -> list[tuple[int, int]]:
    return [(c.config["BLOCK"], c.config["num_warps"]) for c in launch.configs]


def contents(config: CapturedConfig, name: str = "x") -> list[int]:
    assert config.facts is not None
    argument = config.facts.arguments[name]
    assert isinstance(argument, Tensor)
    assert argument.storage.contents is not None
    return argument.storage.contents.view("int32").tolist()


def test_every_config_with_its_own_grid_and_one_module_per_block() -> None:
    kernel = triton.autotune(configs((32, 64), (2, 4), (1, 2)), key=["n"])(triton.jit(body))
    launch = capture_one(kernel, (ints(), 128), {}, lambda meta: (128 // meta["BLOCK"],))
    assert blocks_and_warps(launch) == [(32, 2), (32, 4), (64, 2), (64, 4)]
    facts = [c.facts for c in launch.configs if c.facts is not None]
    assert [(f.grid[0], f.num_warps, f.constants["BLOCK"]) for f in facts] == [
        (4, 2, 32),
        (4, 4, 32),
        (2, 2, 64),
        (2, 4, 64),
    ]
    modules = [c.module for c in launch.configs]
    assert modules[0] is modules[1]
    assert modules[2] is modules[3]
    assert modules[0] is not modules[2]


def test_a_kernel_that_reads_its_number_of_warps_has_a_module_for_each() -> None:
    kernel = triton.autotune(configs((32,), (2, 4), (1, 2)), key=["n"])(triton.jit(body_reading_warps))
    launch = capture_one(kernel, (ints(), 128), {}, (1,))
    assert blocks_and_warps(launch) == [(32, 2), (32, 4)]
    texts = [c.module.text for c in launch.configs if c.module is not None]
    assert "dense<2>" in texts[0]
    assert "dense<4>" in texts[1]


def test_pruned_configs_are_left_out() -> None:
    def early(found: Any, named: Any, **kwargs: Any) -> Any:
        return [c for c in found if c.kwargs["BLOCK"] <= named["n"]]

    prune = {"early_config_prune": early}
    kernel = triton.autotune(configs((32, 64, 256)), key=["n"], prune_configs_by=prune)(triton.jit(body))
    assert blocks_and_warps(capture_one(kernel, (ints(), 128), {}, (1,))) == [(32, 4), (64, 4)]


def test_a_key_seen_before_keeps_its_configs() -> None:
    """Triton prunes where it benchmarks, and takes the winner from then on, for other arguments with the same key as well."""

    def early(found: Any, named: Any, **kwargs: Any) -> Any:
        return [c for c in found if c.kwargs["BLOCK"] <= named["n"]]

    prune = {"early_config_prune": early}
    kernel = triton.autotune(configs((32, 64, 128)), key=[], prune_configs_by=prune)(triton.jit(body))
    taken: list[CapturedLaunch] = []
    with capturing(taken.append):
        kernel[(1,)](ints(), 128)
        kernel[(1,)](ints(), 32)
        kernel[(1,)](ints().float(), 32)
    assert [blocks_and_warps(launch) for launch in taken] == [[(32, 4), (64, 4), (128, 4)]] * 2 + [[(32, 4)]]


def test_a_lone_config_is_a_config() -> None:
    kernel = triton.autotune(configs((32,)), key=["n"])(triton.jit(body))
    assert blocks_and_warps(capture_one(kernel, (ints(), 128), {}, (1,))) == [(32, 4)]


def test_a_config_triton_skips_is_a_note() -> None:
    kernel = triton.autotune(configs((32, 128)), key=["n"])(triton.jit(body_of_small_blocks))
    launch = capture_one(kernel, (ints(), 128), {}, (1,))
    assert blocks_and_warps(launch) == [(32, 4)]
    assert len(launch.notes) == 1
    assert "any other target" in launch.notes[0]


def test_only_configs_triton_skips_are_a_failure() -> None:
    kernel = triton.autotune(configs((128, 256)), key=["n"])(triton.jit(body_of_small_blocks))
    (config,) = capture_one(kernel, (ints(), 128), {}, (1,)).configs
    assert config.failure is not None
    assert config.failure.kind == "compile-failed"


def test_a_config_s_pre_hook_shapes_its_descriptor() -> None:
    def shape(named: dict[str, Any]) -> None:
        named["desc"].block_shape = [named["BLOCK"]]

    kernel = triton.autotune(configs((32, 64), pre_hook=shape), key=["n"])(triton.jit(body_of_descriptor))
    described = TensorDescriptor(torch.zeros(128), [128], [1], [16])
    launch = capture_one(kernel, (described, 128), {}, lambda meta: (128 // meta["BLOCK"],), "cuda:90")
    shapes = []
    for config in launch.configs:
        assert config.facts is not None
        argument = config.facts.arguments["desc"]
        assert isinstance(argument, Descriptor)
        shapes.append(argument.block_shape)
    assert shapes == [(32,), (64,)]


def test_reset_to_zero_happens_where_triton_would_tune() -> None:
    kernel = triton.autotune(configs((32, 64)), key=["n"], reset_to_zero=["x"])(triton.jit(body))
    taken: list[CapturedLaunch] = []
    x = ints()
    with capturing(taken.append) as capture:
        kernel[(1,)](x, 128)
        assert x.tolist() == [0] * 128
        capture.book.mark_clean(x.untyped_storage())
        x.fill_(5)
        kernel[(1,)](x, 128)
    assert x.tolist() == [5] * 128
    assert [contents(c)[0] for c in taken[0].configs] == [0, 0]
    assert [contents(c)[0] for c in taken[1].configs] == [5, 5]


def test_restore_value_gives_the_tensor_back() -> None:
    kernel = triton.autotune(configs((32, 64)), key=["n"], restore_value=["x"])(triton.jit(body))
    x = ints()
    launch = capture_one(kernel, (x, 128), {}, (1,))
    assert x.tolist() == list(range(128))
    assert [contents(c) for c in launch.configs] == [list(range(128))] * 2


def test_hooks_of_the_user_run_once_per_config() -> None:
    seen: list[tuple[str, int]] = []
    kernel = triton.autotune(
        configs((32, 64)),
        key=["n"],
        pre_hook=lambda named, reset_only=False: seen.append(("reset" if reset_only else "pre", named["BLOCK"])),
        post_hook=lambda named, exception: seen.append(("post", named["BLOCK"])),
    )(triton.jit(body))
    capture_one(kernel, (ints(), 128), {}, (1,))
    assert seen == [("pre", 32), ("post", 32), ("pre", 64), ("post", 64), ("reset", 32)]


def test_a_hook_that_launches_makes_a_launch_of_its_own() -> None:
    clear = triton.jit(body_of_small_blocks)
    kernel = triton.autotune(configs((32, 64), pre_hook=lambda named: clear[(1,)](named["x"], 1, BLOCK=16)), key=["n"])(
        triton.jit(body)
    )
    taken: list[CapturedLaunch] = []
    with capturing(taken.append):
        kernel[(1,)](ints(), 128)
    assert [launch.kernel for launch in taken] == ["body_of_small_blocks", "body_of_small_blocks", "body"]
    assert blocks_and_warps(taken[2]) == [(32, 4), (64, 4)]


class OwnTuner(Autotuner):  # type: ignore[misc]
    """As libraries do it: a `run` of its own that benchmarks and then launches the winner."""

    def run(self, *args: Any, **kwargs: Any) -> Any:
        self.nargs = dict(zip(self.arg_names, args, strict=False))
        timings = {c: self._bench(*args, config=c, **kwargs) for c in self.configs}
        best = min(timings, key=lambda c: timings[c])
        return self.fn.run(*args, **kwargs, **best.all_kwargs())


def test_another_autotuner_s_configs_belong_to_one_launch() -> None:
    jitted = triton.jit(body)
    kernel = OwnTuner(jitted, jitted.arg_names, configs((32, 64)), ["n"], None, None)
    taken: list[CapturedLaunch] = []
    with capturing(taken.append):
        kernel[(1,)](ints(), 128)
    (launch,) = taken
    assert blocks_and_warps(launch) == [(32, 4), (64, 4)]


def test_the_winner_can_be_asked_for() -> None:
    kernel = triton.autotune(configs((32, 64)), key=["n"])(triton.jit(body))
    with capturing(lambda launch: None):
        compiled = kernel[(1,)](ints(), 128)
        assert kernel.best_config.kwargs == {"BLOCK": 32}
        assert compiled.metadata.num_warps == 4
