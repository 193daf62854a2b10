"""Shows problems: the list, one problem with its baselines and kernels, and their figures.

Imported by urls.
"""
