"""Runs beside a submission in its sandbox and is never trusted. Imported by nobody else: the
sandbox starts it by its module path."""
