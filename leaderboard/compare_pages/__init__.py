"""Shows submissions and kernels side by side.

Imported by urls and by page rooms that link there.
"""
