"""The messages that cross a process or a network. Imported by every folder, and by the site as the
only one; imports nothing of the package.
"""
