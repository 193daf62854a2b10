"""Forks judges that warm up and time less, for kernels whose times nobody reads."""

from __future__ import annotations

import sys

from evaluator import standby, timing

if __name__ == "__main__":
    timing.WARMUP_CALLS = 32
    timing.TIMED_CALLS = 64
    timing.MIN_TIMED_S = 0.0
    standby.main(int(sys.argv[1]), *sys.argv[2:])
