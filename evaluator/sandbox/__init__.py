"""Keeps a submission in, and handles its processes from outside. Imported by the judge, by
calibration and by the ways in at the top."""
