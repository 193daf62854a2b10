# backend: cpp
# like: segfault
# verdict: runtime_error
# cheat: none, C++ writes far beyond the end of its own buffer
# slow: yes
from torch.utils.cpp_extension import load_inline

SOURCE = """
at::Tensor spill(at::Tensor x) {
    auto y = at::empty_like(x);
    float* data = y.data_ptr<float>();
    for (long i = 0; i < (1L << 32); ++i) data[i] = 0.0f;
    return y;
}
"""

kernel = load_inline(name="spill", cpp_sources=SOURCE, functions=["spill"])


def solution(tensor):
    return kernel.spill(tensor)
