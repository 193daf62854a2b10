"""Holds small helpers of several rooms, each of which says by whom it is used.

Imported by every room and imports none; `make up` imports `secret_key_file` before anything is
installed.
"""
