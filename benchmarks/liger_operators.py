"""Calls operators of liger-kernel forward and backward, as a user's script would.

Run `racefree check benchmarks/liger_operators.py`.
"""

import sys

import torch
from liger_kernel import ops

DEVICE = "cuda"


def tensor(*shape, dtype=torch.float32):
    return torch.randn(*shape, device=DEVICE, dtype=dtype, requires_grad=True)


def backward(result):
    outputs = result if isinstance(result, tuple) else (result,)
    live = [o for o in outputs if isinstance(o, torch.Tensor) and o.requires_grad]
    torch.autograd.backward(live, [torch.ones_like(o) for o in live])


def cross_entropy(**options):
    return ops.LigerCrossEntropyFunction.apply(
        tensor(64, 5000) * 1.0, torch.randint(0, 5000, (64,), device=DEVICE), *options.values()
    )


def fused_linear_cross_entropy():
    target = torch.randint(0, 3000, (96,), device=DEVICE)
    return ops.LigerFusedLinearCrossEntropyFunction.apply(tensor(96, 256), tensor(3000, 256), target)


def jsd():
    return ops.LigerJSDFunction.apply(tensor(48, 3000).log_softmax(-1), tensor(48, 3000).log_softmax(-1).detach())


def fused_linear_jsd():
    return ops.LigerFusedLinearJSDFunction.apply(
        tensor(48, 128), tensor(1500, 128), tensor(48, 128).detach(), tensor(1500, 128).detach()
    )


def rope():
    cos, sin = torch.randn(1, 100, 64, device=DEVICE), torch.randn(1, 100, 64, device=DEVICE)
    return ops.LigerRopeFunction.apply(tensor(2, 8, 100, 64), tensor(2, 2, 100, 64), cos, sin)


def qwen_rope():
    cos, sin = torch.randn(3, 2, 100, 64, device=DEVICE), torch.randn(3, 2, 100, 64, device=DEVICE)
    return ops.LigerQwen2VLMRopeFunction.apply(tensor(2, 8, 100, 64), tensor(2, 2, 100, 64), cos, sin, [8, 12, 12])


def llama4_rope():
    frequencies = torch.polar(torch.ones(100, 32, device=DEVICE), torch.randn(100, 32, device=DEVICE))
    return ops.LigerLlama4RopeFunction.apply(tensor(2, 100, 8, 64), tensor(2, 100, 2, 64), frequencies)


def grpo():
    ids = torch.randint(0, 1000, (4, 31), device=DEVICE)
    return ops.GrpoLossFunction.apply(
        tensor(4, 32, 1000), None, None, ids, torch.randn(4, device=DEVICE), None, 0.9, 0.0, 0.2, 0.4, False
    )


def mixture_of_experts():
    index = torch.randint(0, 4, (64, 2), device=DEVICE)
    weights = torch.rand(64, 2, device=DEVICE, requires_grad=True)
    return ops.LigerFusedMoEFunction.apply(tensor(64, 128), tensor(4, 256, 128), tensor(4, 128, 128), index, weights)


OPERATORS = {
    "rms_norm": lambda: ops.LigerRMSNormFunction.apply(tensor(4, 300, 1000), tensor(1000), 1e-6),
    "rms_norm in_place=False": lambda: ops.LigerRMSNormFunction.apply(
        tensor(4, 300, 64), tensor(64), 1e-6, 0.0, "gemma", False
    ),
    "layer_norm": lambda: ops.LigerLayerNormFunction.apply(tensor(300, 1000), tensor(1000), tensor(1000), 1e-6),
    "fused_add_rms_norm": lambda: ops.LigerFusedAddRMSNormFunction.apply(
        tensor(300, 1000), tensor(300, 1000), tensor(1000), 1e-6
    ),
    "group_norm": lambda: ops.LigerGroupNormFunction.apply(tensor(4, 32, 300), tensor(32), tensor(32), 32, 8, 1e-6),
    "poly_norm": lambda: ops.LigerPolyNormFunction.apply(tensor(300, 1000), tensor(3), tensor(1)),
    "modulated_rms_norm": lambda: ops.LigerModulatedRMSNormFunction.apply(
        tensor(4, 100, 256), tensor(256), tensor(4, 256), tensor(4, 256), 1e-6
    ),
    "dyt": lambda: ops.LigerDyTFunction.apply(tensor(4, 100, 1000), tensor(1), tensor(1000), tensor(1000)),
    "softmax": lambda: ops.LigerSoftmaxFunction.apply(tensor(100, 3000)),
    "softmax wide": lambda: ops.LigerSoftmaxFunction.apply(tensor(10, 100000)),
    "sparsemax": lambda: ops.LigerSparsemaxFunction.apply(tensor(100, 1000), -1),
    "swiglu": lambda: ops.LigerSiLUMulFunction.apply(tensor(4, 100, 1000), tensor(4, 100, 1000)),
    "swiglu fused gate": lambda: ops.LigerFusedGateUpSiLUMulFunction.apply(tensor(4, 100, 2000)),
    "geglu": lambda: ops.LigerGELUMulFunction.apply(tensor(4, 100, 1000), tensor(4, 100, 1000)),
    "relu_squared": lambda: ops.LigerReLUSquaredFunction.apply(tensor(4, 100, 1000)),
    "cross_entropy": cross_entropy,
    "cross_entropy softcap": lambda: ops.LigerCrossEntropyFunction.apply(
        tensor(64, 5000) * 1.0, torch.randint(0, 5000, (64,), device=DEVICE), None, -100, 1e-4, 0.1, "mean", 30.0, True
    ),
    "fused_linear_cross_entropy": fused_linear_cross_entropy,
    "jsd": jsd,
    "fused_linear_jsd": fused_linear_jsd,
    "kl_div": lambda: ops.LigerKLDivLossFunction.apply(
        tensor(48, 3000).log_softmax(-1), tensor(48, 3000).softmax(-1).detach()
    ),
    "tvd": lambda: ops.LigerTVDLossFunction.apply(tensor(48, 3000).softmax(-1), tensor(48, 3000).softmax(-1).detach()),
    "rope": rope,
    "qwen2vl_mrope": qwen_rope,
    "llama4_rope": llama4_rope,
    "grpo_loss": grpo,
    "fused_moe": mixture_of_experts,
    "attn_res": lambda: ops.LigerAttnResFunction.apply(tensor(4, 2, 100, 256), tensor(256), tensor(256), 1e-6),
    "multi_token_attention": lambda: ops.LigerMultiTokenAttentionFunction.apply(
        tensor(2, 4, 64, 64), tensor(4, 4, 3, 3), None, 1, 1
    ),
    "fused_neighborhood_attention": lambda: ops.LigerFusedNeighborhoodAttentionFunction.apply(
        tensor(2, 4, 100, 64), tensor(2, 4, 100, 64), tensor(2, 4, 100, 64)
    ),
    "mhc_pre": lambda: ops.LigerMHCPreFunction.apply(tensor(64, 4, 256, dtype=torch.bfloat16), tensor(64, 4)),
    "mhc_post_res": lambda: ops.LigerMHCPostResFunction.apply(
        tensor(64, 4, 256, dtype=torch.bfloat16),
        tensor(64, 256, dtype=torch.bfloat16),
        tensor(64, 4),
        tensor(64, 4, 4),
    ),
}


def main():
    failed = 0
    for name, operator in OPERATORS.items():
        try:
            backward(operator())
        except Exception as error:
            failed += 1
            print(f"{name}: {type(error).__name__}: {str(error).splitlines()[0][:200]}", file=sys.stderr)
    print(f"{len(OPERATORS)} operators called, {failed} stopped by an exception of their own", file=sys.stderr)


if __name__ == "__main__":
    main()
