"""Lets staff moderate with an audit log, and read in the admin what they may.

Imported by Django, and by submissions for the log.
"""
