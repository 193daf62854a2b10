"""The code that runs beside a submission in its sandbox, never trusted. Imported by nobody else:
the sandbox starts it by its module path.
"""
