"""Keeps and reads the rows that pages show: summaries, boards, published claims, filters, scopes.

Imported by page rooms, api, publishing and staff; submissions and runs call one function each.
"""
