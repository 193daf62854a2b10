# backend: triton
# verdict: runtime_error
# cause: illegal_access
# cheat: none, a kernel writes to address zero
import triton
import triton.language as tl


@triton.jit
def poke(pointer, offset):
    tl.store(pointer + offset, 1.0)


def solution(tensor):
    answer = tensor.clone()
    poke[(1,)](answer, -(answer.data_ptr() // answer.element_size()))
    return answer
