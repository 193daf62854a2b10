# verdict: runtime_error
# cause: claim
# cheat: claims a failure, and has taken it back when the judge wants to read it
import sys
import time

from evaluator.buffers.control_page import CLAIM_LENGTH

frame = sys._getframe()
while "control" not in frame.f_locals:
    frame = frame.f_back
words = frame.f_locals["control"]._words
for _ in range(50):
    words[CLAIM_LENGTH] = 1
    time.sleep(0.03)
    words[CLAIM_LENGTH] = 0
    time.sleep(0.4)


def solution(tensor):
    return tensor
