"""Shows submissions and kernels side by side.

Imported by urls and model_pages.
"""
