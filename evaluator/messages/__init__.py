"""Defines the messages that cross a process or a network, and how they are written. Imported by
every folder, and by the site, which knows nothing else of the package; imports nothing of it."""
