"""Tells operators how the site is, and keeps what it stores.

Imported by the top of the site and by commands.
"""
