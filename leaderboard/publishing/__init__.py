"""Publishes data for use elsewhere: snapshots, citations, feed, badges.

Imported by urls, commands and page rooms that offer a citation.
"""
