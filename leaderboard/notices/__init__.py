"""Sends notices to owners of submissions, by mail and to addresses of their own.

Imported by runs for the sweep, by account_pages and by commands.
"""
