"""Keeps and reads what pages show: summary rows, boards, published claims, filters, scopes.

Imported by the page rooms, api, publishing and staff; submissions and runs use one function each.
"""
