# verdict: runtime_error
# like: forged_claim_of_success
# cheat: a claim of 16 KiB of opening brackets, of which the length is a lie
import sys
import time

from evaluator.buffers.control_page import CLAIM_LENGTH


def solution(tensor):
    control = sys._getframe(2).f_locals["control"]
    control.fail(b"[" * (16 << 10))
    control._words[CLAIM_LENGTH] = (1 << 64) - 1
    time.sleep(3600)
