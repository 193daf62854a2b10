"""Answers the HTTP interface of researchers and of judging hosts.

Imported by urls; imports no page.
"""
