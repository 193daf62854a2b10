"""Makes inputs and true answers in processes of its own, trusted, and compares. Imported by the
judge."""
