"""Tries from inside a sandbox what gets out of it and what its GPUs can do. Imported by nobody:
the self-check starts the programs by their module paths."""
