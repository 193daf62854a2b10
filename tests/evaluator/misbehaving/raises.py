# verdict: runtime_error
# cheat: none, a kernel that fails on a shape it did not expect
def solution(tensor):
    return tensor.view(-1, 7919) @ tensor
