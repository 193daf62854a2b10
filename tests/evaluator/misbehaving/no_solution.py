# verdict: missing_entry_point
# cheat: none, the function has another name
def all_reduce(tensor):
    return tensor
