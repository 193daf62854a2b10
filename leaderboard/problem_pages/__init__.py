"""Shows problems: the list, one problem with its baselines and kernels, and their figures.

Imported by urls and by page rooms that lead to a problem.
"""
