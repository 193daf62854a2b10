"""Shows one language model, one submission, and submissions or kernels side by side.

Imported by urls.
"""
