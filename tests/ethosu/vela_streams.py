"""Random operation lists for Vela: transfers, convolutions, pooling and elementwise work that share small memories."""

from __future__ import annotations

import random
from dataclasses import dataclass
from typing import Any

from ethosu.vela import api

ACCELERATORS = tuple(api.NpuAccelerator)
WEIGHTS, SLOW, FAST, INTERNAL = 0, 1, 2, (1 << 8) | 3
SLOT = 8192
SLOTS = 6


@dataclass(frozen=True)
class Stream:
    accelerator: api.NpuAccelerator
    operations: tuple[Any, ...]
    words: tuple[int, ...]


class _Maker:
    def __init__(self, rng: random.Random, accelerator: api.NpuAccelerator) -> None:
        self.rng = rng
        self.accelerator = accelerator

    def address(self) -> tuple[int, int]:
        region = self.rng.choice((SLOW, FAST))
        return region, self.rng.randrange(SLOTS) * SLOT // 2

    def feature_map(self, height: int, width: int, depth: int, data_type: Any, layout: Any = None) -> Any:
        rng = self.rng
        result = api.NpuFeatureMap()
        result.data_type = data_type
        result.shape = api.NpuShape3D(height, width, depth)
        result.layout = layout or rng.choice((api.NpuLayout.NHWC, api.NpuLayout.NHCWB16))
        result.region, base = self.address()
        result.quantization = api.NpuQuantization(rng.choice((0.5, 1.0, 0.25)), 0)
        if height > 2 and width > 2 and rng.random() < 0.2:
            second, third, fourth = (self.address()[1] + 2 * SLOT * SLOTS for _ in range(3))
            h0, h1, w0 = rng.randrange(1, height), rng.randrange(1, height), rng.randrange(1, width)
            result.tiles = api.NpuTileBox(h0, h1, w0, [base, second, third, fourth])
        else:
            result.tiles = api.NpuTileBox(height, 0, width, [base, 0, 0, 0])
        return result

    def dma(self) -> Any:
        rng = self.rng
        length = rng.choice((256, 512, 1024, 4096))
        source_region, source = self.address()
        target_region, target = self.address()
        if rng.random() < 0.3:
            source_region, source = WEIGHTS, rng.randrange(64) * 256
        kind = rng.random()
        if kind < 0.15:
            slot = rng.randrange(8)
            lut = self.lut_start() + slot * 256
            return api.NpuDmaOperation(
                api.NpuAddressRange(source_region, source, 256), api.NpuAddressRange(INTERNAL, lut, 256)
            )
        return api.NpuDmaOperation(
            api.NpuAddressRange(source_region, source, length), api.NpuAddressRange(target_region, target, length)
        )

    def lut_start(self) -> int:
        from ethosu.vela.architecture_features import Accelerator, create_default_arch

        return int(create_default_arch(Accelerator.from_npu_accelerator(self.accelerator)).shram_lut_address)

    def block_operation(self) -> Any:
        rng = self.rng
        kind = rng.choice(("conv", "depthwise", "pool", "add", "mul", "lrelu"))
        data_type = rng.choice((api.NpuDataType.INT8, api.NpuDataType.UINT8, api.NpuDataType.INT16))
        height, width = rng.choice((4, 6, 8, 12)), rng.choice((4, 5, 8))
        depth = rng.choice((8, 16, 20, 40, 72))
        kernel = api.NpuKernel(rng.choice((1, 2, 3)), rng.choice((1, 2, 3)), *(rng.choice((1, 1, 2)) for _ in range(2)))
        upscale = api.NpuResamplingMode.NONE
        if kind == "conv" and rng.random() < 0.2:
            upscale = rng.choice((api.NpuResamplingMode.NEAREST, api.NpuResamplingMode.TRANSPOSE))
        scale = 1 if upscale is api.NpuResamplingMode.NONE else 2
        top, left = (rng.randrange(0, size) for size in (kernel.height, kernel.width))
        bottom, right = (rng.randrange(0, size) for size in (kernel.height, kernel.width))
        operation: Any
        if kind in ("add", "mul", "lrelu"):
            names = {"add": "ADD", "mul": "MUL", "lrelu": "LRELU"}
            operation = api.NpuElementWiseOperation(api.NpuElementWiseOp[names[kind]])
            operation.ifm = self.feature_map(height, width, depth, data_type)
            if kind != "lrelu":
                repeated = [rng.random() < 0.25 for _ in range(3)]
                shape = [1 if again else size for again, size in zip(repeated, (height, width, depth), strict=True)]
                operation.ifm2 = self.feature_map(*shape, data_type)
            operation.ofm = self.feature_map(height, width, depth, data_type)
        else:
            out_height = (height * scale + top + bottom - kernel.height) // kernel.stride_y + 1
            out_width = (width * scale + left + right - kernel.width) // kernel.stride_x + 1
            if kind == "conv":
                operation = api.NpuConv2DOperation()
            elif kind == "depthwise":
                operation = api.NpuConvDepthWiseOperation()
            else:
                operation = api.NpuPoolingOperation(rng.choice((api.NpuPoolingOp.MAX, api.NpuPoolingOp.AVERAGE)))
            out_depth = rng.choice((8, 16, 24, 40)) if kind == "conv" else depth
            operation.ifm = self.feature_map(height, width, depth, data_type)
            operation.ofm = self.feature_map(out_height, out_width, out_depth, data_type)
            operation.kernel = kernel
            operation.padding = api.NpuPadding(top=top, left=left, bottom=bottom, right=right)
            operation.ifm_upscale = upscale
            if kind in ("conv", "depthwise"):
                self.weights(operation)
        if data_type is api.NpuDataType.INT8 and rng.random() < 0.25:
            operation.activation = api.NpuActivation(api.NpuActivationOp.TABLE_LOOKUP)
            operation.activation.lookup_table_index = rng.randrange(8)
        operation.block_config = rng.choice(api.npu_find_block_configs(operation, self.accelerator))
        return operation

    def weights(self, operation: Any) -> None:
        rng = self.rng
        region, base = (WEIGHTS, rng.randrange(64) * 256) if rng.random() < 0.7 else self.address()
        operation.weights = [api.NpuAddressRange(region, base, rng.choice((256, 512)))]
        operation.biases = [api.NpuAddressRange(region, base + 512, 160)]


def make(seed: int) -> Stream:
    """One stream. A third of the operations read what the one before wrote, as layers of a network do."""
    rng = random.Random(seed)
    accelerator = ACCELERATORS[seed % len(ACCELERATORS)]
    maker = _Maker(rng, accelerator)
    made: list[Any] = []
    while len(made) < rng.randrange(4, 12):
        operation = maker.dma() if rng.random() < 0.4 else maker.block_operation()
        last = next((one for one in reversed(made) if not isinstance(one, api.NpuDmaOperation)), None)
        if last is not None and not isinstance(operation, api.NpuDmaOperation) and rng.random() < 0.5:
            operation.ifm.region = last.ofm.region
            operation.ifm.tiles = operation.ifm.tiles._replace(
                addresses=[last.ofm.tiles.addresses[0], *operation.ifm.tiles.addresses[1:]]
            )
        made.append(operation)
    words = api.npu_generate_register_command_stream(made, accelerator)
    return Stream(accelerator, tuple(made), tuple(words))
