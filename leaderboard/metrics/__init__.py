"""Computes what boards say of kernels, from plain values: scores, ties, failure modes, bounds.

Pure: no database and no request. Imported by every room but kit and models.
"""
