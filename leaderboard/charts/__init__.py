"""Draws figures as plain Plotly specifications: data in, a JSON-able dict out. A module for each
page.

Specs carry no theme; the drawing script adds ink, grid and font from the page's style sheet.
"""
