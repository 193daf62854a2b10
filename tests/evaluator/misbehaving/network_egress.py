# verdict: ok
# cheat: calls out by every road: internet, the host's own loopback services, unix sockets, names
import glob
import socket

import torch.distributed as dist

ROADS = [
    (socket.AF_INET, socket.SOCK_STREAM, ("1.1.1.1", 443)),
    (socket.AF_INET, socket.SOCK_STREAM, ("127.0.0.1", 22)),
    (socket.AF_INET, socket.SOCK_STREAM, ("127.0.0.1", 5432)),
    (socket.AF_INET, socket.SOCK_STREAM, ("127.0.0.1", 6379)),
    (socket.AF_INET, socket.SOCK_STREAM, ("127.0.0.1", 8000)),
    (socket.AF_INET, socket.SOCK_STREAM, ("169.254.169.254", 80)),
    (socket.AF_INET6, socket.SOCK_STREAM, ("2606:4700:4700::1111", 443)),
    (socket.AF_INET, socket.SOCK_DGRAM, ("8.8.8.8", 53)),
]
for family, kind, address in ROADS:
    with socket.socket(family, kind) as road:
        road.settimeout(0.2)
        try:
            road.connect(address)
            road.send(b"hello")
        except OSError:
            continue
        raise RuntimeError(f"escaped: sent to {address}")
for path in glob.glob("/run/**/*.sock", recursive=True) + glob.glob("/var/run/**/*.sock"):
    with socket.socket(socket.AF_UNIX) as road:
        try:
            road.connect(path)
        except OSError:
            continue
        raise RuntimeError(f"escaped: connected to {path}")
try:
    socket.getaddrinfo("pypi.org", 443)
except OSError:
    pass
else:
    raise RuntimeError("escaped: a name was resolved")


def solution(tensor):
    total = tensor.clone()
    dist.all_reduce(total)
    return total
