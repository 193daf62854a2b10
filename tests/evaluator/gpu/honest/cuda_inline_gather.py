# verdict: ok
# problem: allgather
# backend: cuda
# slow: yes
# shows: CUDA that knows neither torch nor its headers, only addresses and a stream
import torch
import torch.distributed as dist
import torch.distributed._symmetric_memory as symm_mem
from torch.utils.cpp_extension import load_inline

CAPACITY = 80 << 20  # elements: more than the largest input has
SOURCE = """
#include <cuda_runtime.h>
#include <pybind11/pybind11.h>
#include <cstdint>
#include <stdexcept>

__global__ void pull(const uint16_t* from, uint16_t* to, int64_t count) {
    const int64_t step = int64_t(gridDim.x) * blockDim.x;
    for (int64_t i = int64_t(blockIdx.x) * blockDim.x + threadIdx.x; i < count; i += step)
        to[i] = from[i];
}

void pull_from(int64_t from, int64_t to, int64_t count, int64_t stream) {
    pull<<<132, 512, 0, reinterpret_cast<cudaStream_t>(stream)>>>(
        reinterpret_cast<const uint16_t*>(from), reinterpret_cast<uint16_t*>(to), count);
    const cudaError_t status = cudaGetLastError();
    if (status != cudaSuccess) throw std::runtime_error(cudaGetErrorString(status));
}

PYBIND11_MODULE(TORCH_EXTENSION_NAME, m) {
    m.def("pull_from", &pull_from);
}
"""

world = dist.group.WORLD
assert world is not None
kernel = load_inline(  # type: ignore[no-untyped-call]
    name="cuda_inline_gather", cpp_sources="", cuda_sources=SOURCE, no_implicit_headers=True
)
shared = symm_mem.empty(
    CAPACITY, dtype=torch.bfloat16, device=torch.device("cuda", torch.cuda.current_device())
)
handle = symm_mem.rendezvous(shared, world)


def solution(tensor: torch.Tensor) -> torch.Tensor:
    count = tensor.numel()
    shared[:count].copy_(tensor.flatten())
    stack = tensor.new_empty(dist.get_world_size(), *tensor.shape)
    stream = torch.cuda.current_stream().cuda_stream
    handle.barrier(channel=0)  # all have written
    for address, slice_of_peer in zip(handle.buffer_ptrs, stack, strict=True):
        kernel.pull_from(address, slice_of_peer.data_ptr(), count, stream)
    handle.barrier(channel=1)  # all have read
    return stack
