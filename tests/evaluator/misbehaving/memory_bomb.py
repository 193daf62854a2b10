# threatens: host
# verdict: oom, resource_limit
# limits: memory_bytes=1610612736
# cheat: takes memory until it is refused
hoard = []


def solution(tensor):
    while True:
        hoard.append(bytearray(b"x") * (64 << 20))
