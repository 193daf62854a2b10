"""Takes in what people submit, all of an upload or nothing, and moderates it with an audit log.

Imported by runs, account_pages, staff, api and commands; nothing else writes submissions.
"""
