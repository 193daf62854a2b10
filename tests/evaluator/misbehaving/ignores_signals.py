# threatens: host
# verdict: timeout
# limits: verify_s=4
# cheat: ignores every signal it may, forks a child that does the same, and hangs
import os
import signal
import time

for number in signal.valid_signals():
    try:
        signal.signal(number, signal.SIG_IGN)
    except (OSError, ValueError):
        continue


def solution(tensor):
    os.fork()
    while True:
        time.sleep(3600)
