# verdict: runtime_error
# cheat: none, reads address zero
import ctypes


def solution(tensor):
    return ctypes.string_at(0)
