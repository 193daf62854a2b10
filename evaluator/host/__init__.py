"""The judging host: its GPUs, cores, cgroups and processes. Imported by the judge, the oracle, the
sandbox, calibration and the ways in at the top.
"""
