# verdict: runtime_error
# cheat: none, dies of SIGABRT
import os


def solution(tensor):
    os.abort()
