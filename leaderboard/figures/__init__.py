"""Holds what page rooms share of figures: the frame, the tables, rows of boards and of claims.

Imported by the page rooms and urls; `charts/` is pure.
"""
