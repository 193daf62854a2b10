"""Shows a user their tokens and submissions, and takes uploads and changes.

Imported by urls.
"""
