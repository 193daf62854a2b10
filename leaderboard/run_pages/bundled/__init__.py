"""Holds files that go into a bundle as they are.

Imported by nothing here: whoever unpacks a bundle runs them.
"""
