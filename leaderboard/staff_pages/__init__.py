"""Serves the pages of staff: hosts, accounts, complaints and rulings, the audit log.

A permission opens each of them; to be of the staff alone opens none.
"""
