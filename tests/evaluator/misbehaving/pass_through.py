# verdict: output_mismatch
# cheat: returns its input
def solution(tensor):
    return tensor
