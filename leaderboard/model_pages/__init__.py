"""Shows one language model and one submission, with their figures. Imported by urls."""
