# backend: cpp
# verdict: build_error
# cheat: none, the C++ has a syntax error
from torch.utils.cpp_extension import load_inline

kernel = load_inline(
    name="broken",
    cpp_sources="at::Tensor twice(at::Tensor x) { return x * }",
    functions=["twice"],
    no_implicit_headers=True,  # torch's own take half a minute, and the error comes after them
)


def solution(tensor):
    return kernel.twice(tensor)
