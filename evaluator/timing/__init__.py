"""Turns times into a speedup, and hardware limits into the least time of a call. Imported by the
judge, the oracle, the buffers, calibration and the exported facts."""
