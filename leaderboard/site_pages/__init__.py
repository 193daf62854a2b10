"""Shows the site itself: methodology, status, hardware, search, site map, and any figure by its
name.

Imported by urls.
"""
