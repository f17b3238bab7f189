"""Runs an autotuned launch with every config Triton would try, in place of picking one."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from racefree.triton.arguments import plain_constant
from racefree.triton.hostcompile import jit_function

if TYPE_CHECKING:
    from racefree.triton.collector import Capture, Group


def run_every_config(capture: Capture, tuner: Any, args: Sequence[Any], kwargs: dict[str, Any]) -> Any:
    """What `Autotuner.run` does with a cold cache, hooks included, for every config it may choose.

    Those are the survivors of pruning when a key is seen for the first time; later launches with the key use one of them
    too, whatever their other arguments are. The tuner's own pre and post hooks only run where Triton would benchmark: the
    first time, if there is more than one. Returns the stand-in kernel of the first config that compiled.
    """
    with capture.group(jit_function(tuner), tuned=True) as group:
        tuner.nargs = dict(zip(tuner.arg_names, args, strict=False))
        configs, benchmarked = tuner.configs, False
        if len(configs) > 1:
            key = _tuning_key(tuner, kwargs)
            configs, first = capture.survivors(tuner, key, lambda: tuner.prune_configs(kwargs))
            benchmarked = first and len(configs) > 1
        kernels = [_run_config(group, tuner, config, args, kwargs, benchmarked) for config in configs]
        best = next((i for i, k in enumerate(kernels) if k is not None and k.compiled.failure is None), 0)
        tuner.best_config = configs[best]
        if benchmarked:
            tuner.pre_hook({**tuner.nargs, **kwargs, **configs[best].all_kwargs()}, reset_only=True)
        tuner.nargs = None
        return kernels[best]


def _run_config(
    group: Group, tuner: Any, config: Any, args: Sequence[Any], kwargs: dict[str, Any], benchmarked: bool
) -> Any:
    conflicts = kwargs.keys() & config.kwargs.keys()
    if conflicts:
        raise ValueError(f"Conflicting meta-parameters: {', '.join(sorted(conflicts))}")
    current = {**kwargs, **config.all_kwargs()}
    named = {**tuner.nargs, **current}
    if config.pre_hook:
        config.pre_hook(named)
    if benchmarked:
        tuner.pre_hook(named)
    with tuning_with(group, config):
        kernel = tuner.fn.run(*args, **current)
    if benchmarked:
        tuner.post_hook(named, exception=None)
    return kernel


@contextmanager
def tuning_with(group: Group, config: Any) -> Iterator[None]:
    """Launches inside are made with an autotuner's config."""
    before = group.tuning
    group.tuning = config_data(config)
    try:
        yield
    finally:
        group.tuning = before


def config_data(config: Any) -> dict[str, Any]:
    """A `triton.Config` as plain data: its keyword arguments, and the number of warps, which decides who owns a lane."""
    data = {name: plain_constant(value) for name, value in config.kwargs.items()}
    if config.num_warps is not None:
        data["num_warps"] = int(config.num_warps)
    if config.num_ctas not in (None, 1):
        data["num_ctas"] = int(config.num_ctas)
    return data


def _tuning_key(tuner: Any, kwargs: dict[str, Any]) -> tuple[Any, ...]:
    named = {k: v for k, v in {**tuner.nargs, **kwargs}.items() if k in tuner.arg_names}
    key = [named[k] for k in tuner.keys if k in named]
    return (*key, *(str(v.dtype) for v in named.values() if hasattr(v, "dtype")))
