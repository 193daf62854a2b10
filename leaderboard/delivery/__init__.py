"""Turns what a page holds into bytes: HTML, JSON and CSV at one address, cached by data version.

Imported by read_model, figures and every page room; imports kit, models and metrics.
"""
