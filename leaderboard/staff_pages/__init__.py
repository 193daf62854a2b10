"""Serves the pages of staff: hosts, accounts, complaints and rulings, the audit log.

Imported by the list of addresses; a permission opens each page, to be of the staff opens none.
"""
