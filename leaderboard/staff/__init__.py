"""Lets staff moderate with an audit log, and read everything in the admin.

Imported by Django, and by submissions for the log.
"""
