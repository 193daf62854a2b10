"""Publishes data for use elsewhere: snapshots, citations, feed, badges, the client.

Imported by urls, operations and commands.
"""
