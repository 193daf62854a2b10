# verdict: runtime_error
# cheat: an exception whose cause is itself and whose attributes raise
class Endless(Exception):
    @property
    def __traceback__(self):
        raise RuntimeError("no traceback for you")

    @property
    def __cause__(self):
        return self

    @property
    def args(self):
        raise MemoryError


def solution(tensor):
    raise Endless
