"""Shows the site itself: methodology, status, hardware, search, site map, any figure by its name.

Imported by urls and by no other room.
"""
