# backend: cpp
# verdict: runtime_error
# cause: api
# cheat: none, the compiled module lacks the function that is called
from torch.utils.cpp_extension import load_inline

SOURCE = """
#include <pybind11/pybind11.h>

PYBIND11_MODULE(TORCH_EXTENSION_NAME, m) {
    m.def("double_it", [](int x) { return 2 * x; });
}
"""

kernel = load_inline(name="missing_symbol", cpp_sources=SOURCE, no_implicit_headers=True)


def solution(tensor):
    return kernel.all_reduce(tensor)
