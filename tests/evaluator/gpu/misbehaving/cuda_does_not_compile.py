# backend: cuda
# verdict: build_error
# cause: compiler
# cheat: none, the CUDA has a syntax error
from torch.utils.cpp_extension import load_inline

kernel = load_inline(
    name="broken_cuda",
    cpp_sources="",
    cuda_sources="__global__ void twice(float* x) { x[threadIdx.x] *= ; }",
    no_implicit_headers=True,  # torch's own take half a minute
)


def solution(tensor):
    return kernel.twice(tensor)
