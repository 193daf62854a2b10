# backend: triton
# verdict: build_error
# cause: triton_compile
# cheat: none, the Triton has a range that is no power of two, which shows at the first call
import torch
import triton
import triton.language as tl


@triton.jit
def copy(given, answer):
    place = tl.arange(0, 100)
    tl.store(answer + place, tl.load(given + place))


def solution(tensor):
    answer = torch.empty_like(tensor)
    copy[(1,)](tensor, answer)
    return answer
