"""Publishes data for use elsewhere: snapshots, citations, feeds, badges.

Imported by urls, commands and page rooms that offer a citation.
"""
