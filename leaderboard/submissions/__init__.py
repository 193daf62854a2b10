"""Takes in what people hand in, all of an upload or nothing, and is the only writer of submissions
and kernels.

Imported by runs, account_pages, api and commands.
"""
