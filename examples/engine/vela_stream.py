"""Has Vela make a command stream of three operations, then checks it with and without the waits that Vela put in.

Needs the package ethos-u-vela.
"""

from ethosu.vela import api

from racefree.ethosu.check import check_stream

ACCELERATOR = api.NpuAccelerator.Ethos_U55_128
DMA_WAIT, KERNEL_WAIT = 0x011, 0x012


def feature_map(region: int, address: int) -> api.NpuFeatureMap:
    made = api.NpuFeatureMap()
    made.data_type = api.NpuDataType.INT8
    made.region = region
    made.shape = api.NpuShape3D(height=16, width=16, depth=16)
    made.tiles = api.NpuTileBox(height_0=16, height_1=0, width_0=16, addresses=[address, 0, 0, 0])
    made.quantization = api.NpuQuantization(scale_f32=1.0, zero_point=0)
    return made


def transfer(source: tuple[int, int], target: tuple[int, int]) -> api.NpuDmaOperation:
    return api.NpuDmaOperation(api.NpuAddressRange(*source, 4096), api.NpuAddressRange(*target, 4096))


pool = api.NpuPoolingOperation(api.NpuPoolingOp.MAX)
pool.ifm, pool.ofm = feature_map(1, 0), feature_map(1, 8192)
pool.kernel = api.NpuKernel(1, 1)
pool.padding = api.NpuPadding(0, 0, 0, 0)
pool.block_config = api.npu_find_block_configs(pool, ACCELERATOR)[0]

words = api.npu_generate_register_command_stream(
    [transfer((0, 0), (1, 0)), pool, transfer((0, 4096), (1, 0))], ACCELERATOR
)
print("as Vela made it:", check_stream(words, ACCELERATOR.name).status.value)
for code, name in ((DMA_WAIT, "DMA_WAIT"), (KERNEL_WAIT, "KERNEL_WAIT")):
    fewer = [word for word in words if word & 0xFFFF != code]
    (verdict,) = check_stream(fewer, ACCELERATOR.name).orders
    for race in verdict.races:
        print(f"without {name}: {race.race_type} {race.first.name} / {race.second.name} on {race.first.buffer}")
