# verdict: output_mismatch, runtime_error, dtype_mismatch, shape_mismatch
# cheat: a tensor subclass that answers True to whatever is asked of it
import torch


class Agreeable(torch.Tensor):
    @classmethod
    def __torch_function__(cls, func, types, args=(), kwargs=None):
        return True


def solution(tensor):
    return torch.Tensor._make_subclass(Agreeable, torch.zeros_like(tensor))
