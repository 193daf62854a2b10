# threatens: host
# like: ignores_signals
# verdict: timeout
# limits: verify_s=4
# cheat: stops with SIGSTOP: neither dead nor answering
import os
import signal


def solution(tensor):
    os.kill(os.getpid(), signal.SIGSTOP)
    return tensor
