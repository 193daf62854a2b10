"""Shows one language model and one submission, with their figures.

Imported by urls, account_pages and site_pages.
"""
