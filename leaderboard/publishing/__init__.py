"""Publishes data for use elsewhere: snapshots, citations, feed, badges, the client.

Imported by urls, commands and page rooms that offer a citation or the client.
"""
