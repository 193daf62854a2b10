# backend: cpp
# verdict: ok
# slow: yes
# shows: C++ compiled at import, once for all ranks
import torch
import torch.distributed as dist
from torch.utils.cpp_extension import load_inline

SOURCE = """
at::Tensor sum_parts(const at::Tensor& parts) {
    auto total = at::empty_like(parts[0]);
    const float* from = parts.data_ptr<float>();
    float* to = total.data_ptr<float>();
    const int64_t ranks = parts.size(0), n = total.numel();
    for (int64_t i = 0; i < n; ++i) {
        float sum = 0;
        for (int64_t r = 0; r < ranks; ++r) sum += from[r * n + i];
        to[i] = sum;
    }
    return total;
}
"""

kernel = load_inline(name="sum_parts", cpp_sources=SOURCE, functions=["sum_parts"])  # type: ignore[no-untyped-call]


def solution(tensor: torch.Tensor) -> torch.Tensor:
    parts = tensor.new_empty(dist.get_world_size(), *tensor.shape)
    dist.all_gather(list(parts.unbind()), tensor)
    answer: torch.Tensor = kernel.sum_parts(parts)
    return answer
