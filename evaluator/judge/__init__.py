"""Runs the phases of a job, trusted, and decides its verdict. Imported by the ways in at the
top."""
