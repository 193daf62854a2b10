# verdict: runtime_error
# cheat: an exception text that UTF-8 cannot encode, with markup, NUL and terminal controls
def solution(tensor):
    raise RuntimeError("\ud800\udfff\x00\x1b[2J<script>alert(1)</script>\u202e")
