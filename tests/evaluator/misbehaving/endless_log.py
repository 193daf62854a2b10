# threatens: host
# verdict: timeout
# limits: build_s=4
# cheat: prints without end, to fill the host's disk or memory
# like: stdout_flood
import os

while True:
    os.write(2, b"\x1b[31m" + b"y" * 65536)
