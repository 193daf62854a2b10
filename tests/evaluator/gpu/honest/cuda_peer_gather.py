# verdict: ok
# problem: allgather
# backend: cuda
# slow: yes
# shows: CUDA that reads the other ranks' memory, compiled as published kernels do it
import torch
import torch.distributed as dist
import torch.distributed._symmetric_memory as symm_mem
from utils.cuda_helpers import compile_cuda_extension  # type: ignore[import-not-found]

CAPACITY = 80 << 20  # elements: more than the largest input has
SOURCE = """
#include <torch/extension.h>
#include <ATen/cuda/CUDAContext.h>
#include <c10/cuda/CUDAException.h>
#include <cstdint>
#include <vector>

constexpr int MOST_PEERS = 8;

struct Peers {
    const void* memory[MOST_PEERS];
};

template <typename Word>
__global__ void pull(Peers peers, Word* stack, int64_t words) {
    const Word* from = static_cast<const Word*>(peers.memory[blockIdx.y]);
    Word* to = stack + blockIdx.y * words;
    const int64_t step = int64_t(gridDim.x) * blockDim.x;
    for (int64_t i = int64_t(blockIdx.x) * blockDim.x + threadIdx.x; i < words; i += step)
        to[i] = from[i];
}

template <typename Word>
void launch(const Peers& peers, void* stack, int64_t ranks, int64_t nbytes) {
    const dim3 blocks(64, static_cast<unsigned>(ranks));
    auto stream = at::cuda::getCurrentCUDAStream();
    pull<Word><<<blocks, 512, 0, stream>>>(
        peers, static_cast<Word*>(stack), nbytes / int64_t(sizeof(Word)));
    C10_CUDA_KERNEL_LAUNCH_CHECK();
}

void gather(const std::vector<int64_t>& addresses, at::Tensor stack) {
    const int64_t ranks = stack.size(0), nbytes = stack.nbytes() / ranks;
    TORCH_CHECK(ranks <= MOST_PEERS && ranks == int64_t(addresses.size()));
    Peers peers{};
    for (int64_t r = 0; r < ranks; ++r)
        peers.memory[r] = reinterpret_cast<const void*>(addresses[r]);
    if (nbytes % 16 == 0)
        launch<uint4>(peers, stack.data_ptr(), ranks, nbytes);
    else
        launch<uint16_t>(peers, stack.data_ptr(), ranks, nbytes);
}

PYBIND11_MODULE(TORCH_EXTENSION_NAME, m) {
    m.def("gather", &gather);
}
"""

world = dist.group.WORLD
assert world is not None
kernel = compile_cuda_extension("cuda_peer_gather", SOURCE)
shared = symm_mem.empty(
    CAPACITY, dtype=torch.bfloat16, device=torch.device("cuda", torch.cuda.current_device())
)
handle = symm_mem.rendezvous(shared, world)


def solution(tensor: torch.Tensor) -> torch.Tensor:
    shared[: tensor.numel()].copy_(tensor.flatten())
    stack = tensor.new_empty(dist.get_world_size(), *tensor.shape)
    handle.barrier(channel=0)  # all have written
    kernel.gather(handle.buffer_ptrs, stack)
    handle.barrier(channel=1)  # all have read
    return stack
