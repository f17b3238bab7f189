"""Calls operators of fla-core forward and backward, as a user's script would: `racefree check benchmarks/fla_operators.py`.

Arguments, if any, are words; only operators whose name contains one of them are called.
"""

import importlib
import sys

import torch
import torch.nn.functional as F

DEVICE = "cuda"
B, T, H, D = 2, 130, 4, 64


def tensor(*shape):
    return torch.randn(*shape, device=DEVICE, dtype=torch.bfloat16, requires_grad=True)


def gate(*shape):
    return F.logsigmoid(tensor(*shape))


def heads(count=3, width=D):
    return [tensor(B, T, H, width) for _ in range(count)]


def unit(x):
    return F.normalize(x, dim=-1)


def offsets():
    return torch.tensor([0, 40, 100, B * T], device=DEVICE, dtype=torch.long)


def flat(count=3, width=D):
    return [tensor(1, B * T, H, width) for _ in range(count)]


def beta():
    return tensor(B, T, H).sigmoid()


def delta_heads():
    q, k, v = heads()
    return q, unit(k), v


CALLS = {
    "ops.gla:chunk_gla": lambda f: f(*heads(), gate(B, T, H, D)),
    "ops.gla:chunk_gla varlen": lambda f: f(*flat(), gate(1, B * T, H, D), cu_seqlens=offsets()),
    "ops.gla:fused_recurrent_gla": lambda f: f(*heads(), gate(B, T, H, D)),
    "ops.delta_rule:chunk_delta_rule": lambda f: f(*delta_heads(), beta()),
    "ops.delta_rule:chunk_delta_rule varlen": lambda f: f(*flat(), tensor(1, B * T, H).sigmoid(), cu_seqlens=offsets()),
    "ops.delta_rule:fused_recurrent_delta_rule": lambda f: f(*delta_heads(), beta()),
    "ops.gated_delta_rule:chunk_gated_delta_rule": lambda f: f(*delta_heads(), gate(B, T, H), beta()),
    "ops.gated_delta_rule:chunk_gated_delta_rule varlen": lambda f: f(
        *flat(), gate(1, B * T, H), tensor(1, B * T, H).sigmoid(), cu_seqlens=offsets()
    ),
    "ops.retention:chunk_retention": lambda f: f(*heads()),
    "ops.retention:parallel_retention": lambda f: f(*heads()),
    "ops.retention:fused_recurrent_retention": lambda f: f(*heads()),
    "ops.simple_gla:chunk_simple_gla": lambda f: f(*heads(), gate(B, T, H)),
    "ops.simple_gla:parallel_simple_gla": lambda f: f(*heads(), gate(B, T, H)),
    "ops.simple_gla:fused_recurrent_simple_gla": lambda f: f(*heads(), gate(B, T, H)),
    "ops.linear_attn:chunk_linear_attn": lambda f: f(*heads()),
    "ops.linear_attn:fused_chunk_linear_attn": lambda f: f(*heads()),
    "ops.hgrn:chunk_hgrn": lambda f: f(tensor(B, T, H * D), gate(B, T, H * D)),
    "ops.hgrn:fused_recurrent_hgrn": lambda f: f(tensor(B, T, H * D), gate(B, T, H * D)),
    "ops.rwkv6:chunk_rwkv6": lambda f: f(*heads(), gate(B, T, H, D), tensor(H, D)),
    "ops.rwkv6:fused_recurrent_rwkv6": lambda f: f(*heads(), gate(B, T, H, D), tensor(H, D)),
    "ops.rwkv7:chunk_rwkv7": lambda f: f(
        tensor(B, T, H, D), gate(B, T, H, D), *heads(2), unit(tensor(B, T, H, D)), unit(tensor(B, T, H, D))
    ),
    "ops.gsa:chunk_gsa": lambda f: f(*heads(), tensor(B, T, H, 64), gate(B, T, H, 64)),
    "ops.rebased:parallel_rebased": lambda f: f(tensor(B, H, T, 16), tensor(B, H, T, 16), tensor(B, H, T, D)),
    "ops.based:parallel_based": lambda f: f(tensor(B, H, T, 16), tensor(B, H, T, 16), tensor(B, H, T, D)),
    "ops.forgetting_attn:parallel_forgetting_attn": lambda f: f(*heads(), gate(B, T, H)),
    "ops.attn:parallel_attn": lambda f: f(*heads()),
    "ops.attn:parallel_attn varlen": lambda f: f(*flat(), cu_seqlens=offsets()),
    "ops.lightning_attn:chunk_lightning_attn": lambda f: f(*heads(), 2, 8),
    "ops.kda:chunk_kda": lambda f: f(*delta_heads(), gate(B, T, H, D), beta()),
    "ops.ttt:chunk_ttt_linear": lambda f: f(*heads(), tensor(H, D), tensor(H, D), tensor(B, T, H, 1)),
    "ops.comba:chunk_comba": lambda f: f(*delta_heads(), unit(tensor(B, T, H, D)), gate(B, T, H), beta()),
    "ops.path_attn:parallel_path_attn": lambda f: f(*delta_heads(), unit(tensor(B, T, H, D)), beta()),
    "ops.nsa:parallel_nsa": lambda f: f(
        tensor(B, T, 16, D),
        tensor(B, T, 1, D),
        tensor(B, T, 1, D),
        g_slc=tensor(B, T, 16),
        g_swa=tensor(B, T, 16),
        block_indices=torch.randint(0, 3, (B, T, 1, 4), device=DEVICE),
        block_counts=4,
    ),
    "modules:RMSNorm": lambda f: f(256).to(DEVICE)(tensor(B, T, 256)),
    "modules:LayerNorm": lambda f: f(256).to(DEVICE)(tensor(B, T, 256)),
    "modules:GroupNorm": lambda f: f(8, 256).to(DEVICE)(tensor(B, T, 256)),
    "modules:FusedRMSNormGated": lambda f: f(256).to(DEVICE)(tensor(B, T, 256), tensor(B, T, 256)),
    "modules:ShortConvolution": lambda f: f(256, 4).to(DEVICE)(tensor(B, T, 256))[0],
    "modules:FusedCrossEntropyLoss": lambda f: f()(
        tensor(B * T, 1000), torch.randint(0, 1000, (B * T,), device=DEVICE)
    ),
    "modules:RotaryEmbedding": lambda f: f(D).to(DEVICE)(*heads(2)),
    "modules.l2norm:l2norm": lambda f: f(tensor(B, T, H, D)),
    "modules.token_shift:token_shift": lambda f: f(tensor(B, T, 256)),
    "modules.activations:swiglu": lambda f: f(tensor(B, T, 256), tensor(B, T, 256)),
    "modules.activations:logsigmoid": lambda f: f(tensor(B, T, 256)),
}


def backward(result):
    outputs = result if isinstance(result, tuple) else (result,)
    live = [o for o in outputs if isinstance(o, torch.Tensor) and o.requires_grad]
    torch.autograd.backward(live, [torch.ones_like(o) for o in live])


def main():
    failed = 0
    wanted = sys.argv[1:]
    calls = {n: c for n, c in CALLS.items() if not wanted or any(w in n for w in wanted)}
    for name, call in calls.items():
        module, _, function = name.split()[0].partition(":")
        try:
            backward(call(getattr(importlib.import_module(f"fla.{module}"), function)))
        except Exception as error:
            failed += 1
            print(f"{name}: {type(error).__name__}: {str(error).splitlines()[0][:200]}", file=sys.stderr)
    print(f"{len(calls)} operators called, {failed} stopped by an exception of their own", file=sys.stderr)


if __name__ == "__main__":
    main()
