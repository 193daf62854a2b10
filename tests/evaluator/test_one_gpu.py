"""Indices of GPUs where every rank has the same one; no GPU is needed to see what becomes of
them."""

from __future__ import annotations

import subprocess
import sys
from typing import Any

import pytest
import torch

from evaluator.rank.one_gpu import OnlyGpu, names_devices
from evaluator.sandbox.sandbox import REPOSITORY


@pytest.mark.parametrize(
    "source",
    [
        'device = torch.device("cuda", rank)',
        'x = x.to(f"cuda:{dist.get_rank()}")',
        "torch.cuda.set_device(rank)",
        'torch.cuda.set_device(int(os.environ["LOCAL_RANK"]))',
        "y = x.cuda(rank)",
        "torch.empty(4, device=rank)",
    ],
)
def test_a_source_that_names_gpus_is_known(source: str) -> None:
    assert names_devices(source)
    assert not names_devices("x = torch.empty_like(y).cuda()\ndist.all_reduce(x)")


def test_every_index_means_the_first() -> None:
    def given(*args: Any, **kwargs: Any) -> tuple[list[Any], dict[str, Any]]:
        return list(args), kwargs

    def seen(name: str, *args: Any, **kwargs: Any) -> tuple[list[Any], dict[str, Any]]:
        given.__name__ = name
        found: tuple[list[Any], dict[str, Any]] = OnlyGpu().__torch_function__(
            given, (), args, kwargs
        )
        return found

    first, third = torch.device("cuda", 0), torch.device("cuda", 2)
    assert seen("empty", 3, device=third) == ([3], {"device": first})
    assert seen("empty", 3, device=2) == ([3], {"device": 0})
    assert seen("to", "x", "cuda:2", torch.half) == (["x", "cuda:0", torch.half], {})
    assert seen("to", "x", torch.device("cpu")) == (["x", torch.device("cpu")], {})
    assert seen("cuda", "x", 2) == (["x", 0], {})
    assert seen("add", 1, 2) == ([1, 2], {})


def test_torch_is_told_so_in_a_rank() -> None:
    program = (
        "import torch\nfrom evaluator.rank import one_gpu\none_gpu.install(4)\n"
        "assert torch.device('cuda', 3) == torch.device('cuda:2') == torch.device('cuda:0')\n"
        "assert torch.device('cuda', index=1).index == 0 and torch.device('cuda').index is None\n"
        "assert torch.cuda.device(3).idx == 0 and torch.cuda.device(-1).idx == -1\n"
        "assert torch.cuda.device_count() == 4 and torch.cuda.can_device_access_peer(0, 3)\n"
        "assert torch.zeros(2, device='cpu').sum().item() == 0\n"
    )
    subprocess.run([sys.executable, "-c", program], cwd=REPOSITORY, check=True)
