# verdict: runtime_error
# cheat: none, the entry point takes other arguments than the reference
def solution(tensor, scale, bias):
    return tensor * scale + bias
