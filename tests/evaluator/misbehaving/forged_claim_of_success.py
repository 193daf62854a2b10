# verdict: runtime_error
# cheat: claims the verdicts that only the judge may give
import json
import sys
import time


def solution(tensor):
    control = sys._getframe(2).f_locals["control"]
    for verdict in ("ok", "infra_error", "cancelled", "host_unsupported"):
        claim = {"verdict": verdict, "cause": "none", "text": "<b>nothing is wrong</b>"}
        control.fail(json.dumps(claim).encode())
    time.sleep(3600)
