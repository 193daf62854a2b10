"""Turns what a page holds into HTML, JSON and CSV at one address, and keeps finished answers under
the data version.

Imported by read_model, publishing, figures, the page rooms and api.
"""
