# like: lazy_subclass
# verdict: output_mismatch, runtime_error
# cheat: a wrapper tensor that claims the right shape and gives out zeros when it is read
import torch


class Promise(torch.Tensor):
    @staticmethod
    def __new__(cls, like):
        return torch.Tensor._make_wrapper_subclass(cls, like.shape, dtype=like.dtype)

    @classmethod
    def __torch_dispatch__(cls, func, types, args=(), kwargs=None):
        plain = [torch.zeros(a.shape) if isinstance(a, Promise) else a for a in args]
        return func(*plain, **(kwargs or {}))


def solution(tensor):
    return Promise(tensor)
