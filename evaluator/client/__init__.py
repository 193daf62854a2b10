"""Hands kernels in to a site and reads results, as `pkb`: standard library, Python 3.9 on.

Imported by tooling alone; carried out of this tree as `pkb.client`, so its imports are relative.
"""
