"""Frames figures: the frame in a page, the page of their own, the tables beside them.

Imported by the page rooms.
"""
