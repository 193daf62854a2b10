"""Shows one run and one kernel: evidence, source, differences, bundles, and their figures.

Imported by urls.
"""
