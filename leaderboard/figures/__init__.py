"""Frames the figures of pages: the frame in a page, the tables beside a drawing.

Imported by page rooms, which draw with charts.
"""
