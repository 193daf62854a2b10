"""Shows staff their pages: hosts, complaints, rulings, bans, the audit log, and the admin.

Imported by urls and by Django.
"""
