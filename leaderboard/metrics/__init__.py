"""Computes what boards say of kernels from plain values, without database or request: scores, ties,
failure modes, bounds.

Imported by every room but kit and models.
"""
