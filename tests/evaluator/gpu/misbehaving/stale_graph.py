# verdict: output_mismatch
# flags: static:cuda-graph
# timed: yes
# cheat: none, a graph that holds the addresses of the first call's inputs and reads them ever after
import torch
import torch.distributed as dist

graphs = {}


def captured(tensor):
    total = tensor.clone()
    side = torch.cuda.Stream()
    side.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(side):
        dist.all_reduce(total)
    torch.cuda.current_stream().wait_stream(side)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph, capture_error_mode="thread_local"):
        total.copy_(tensor)
        dist.all_reduce(total)
    return graph, total


def solution(tensor):
    if tensor.shape not in graphs:
        graphs[tensor.shape] = captured(tensor)
    graph, total = graphs[tensor.shape]
    graph.replay()
    return total.clone()
