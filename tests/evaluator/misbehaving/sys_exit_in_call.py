# verdict: runtime_error
# cheat: raises SystemExit(0) in a call, which `except Exception` does not catch
def solution(tensor):
    raise SystemExit(0)
