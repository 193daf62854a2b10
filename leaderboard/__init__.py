"""Stores, ranks and explains what was judged: the site.

Imported by commands, gunicorn and tests; never loads torch.
"""
