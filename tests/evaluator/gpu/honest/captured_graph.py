# verdict: ok
# flags: uses_nccl, static:cuda-graph
# shows: a CUDA graph for each shape, which reads the inputs of the call anew
import torch
import torch.distributed as dist

Captured = tuple[torch.cuda.CUDAGraph, torch.Tensor, torch.Tensor]
graphs: dict[torch.Size, Captured] = {}


def captured(like: torch.Tensor) -> Captured:
    given, total = torch.zeros_like(like), torch.zeros_like(like)
    side = torch.cuda.Stream()  # type: ignore[no-untyped-call]
    side.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(side):
        dist.all_reduce(total)  # whatever NCCL does in a first call is not captured
    torch.cuda.current_stream().wait_stream(side)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph, capture_error_mode="thread_local"):
        total.copy_(given)
        dist.all_reduce(total)
    return graph, given, total


def solution(tensor: torch.Tensor) -> torch.Tensor:
    if tensor.shape not in graphs:
        graphs[tensor.shape] = captured(tensor)
    graph, given, total = graphs[tensor.shape]
    given.copy_(tensor)
    graph.replay()
    return total.clone()
