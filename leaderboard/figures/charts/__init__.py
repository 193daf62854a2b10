"""Draws figures as plain Plotly specifications: data in, a dict out that JSON can hold.

Imported by figures and the page rooms; imports metrics and kit only.
"""
