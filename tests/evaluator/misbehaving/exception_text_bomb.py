# verdict: runtime_error
# like: exception_chain_bomb
# cheat: an exception with 4 MiB of text to fill the report
def solution(tensor):
    raise RuntimeError("A" * (4 << 20))
