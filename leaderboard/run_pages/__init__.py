"""Shows one run and one kernel: evidence, source, differences, bundles, and their figures.

Imported by urls and by page rooms that show a part of a run.
"""
