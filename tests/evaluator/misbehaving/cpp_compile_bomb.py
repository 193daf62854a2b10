# backend: cpp
# verdict: build_error, timeout, oom
# limits: build_s=6
# cheat: a template that makes the compiler work for hours
# like: cpp_does_not_compile
# slow: yes
from torch.utils.cpp_extension import load_inline

SOURCE = """
template <unsigned long A, unsigned long B> struct Tree {
    static constexpr unsigned long value = Tree<A * 2, B + 1>::value + Tree<A * 2 + 1, B + 1>::value;
};
template <unsigned long A> struct Tree<A, 26> { static constexpr unsigned long value = A; };
unsigned long bomb() { return Tree<1, 0>::value; }
"""

kernel = load_inline(name="bomb", cpp_sources=SOURCE, functions=["bomb"])


def solution(tensor):
    return tensor + kernel.bomb()
