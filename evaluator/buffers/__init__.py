"""Lays out and maps the memory that judge and ranks share. Imported by the judge, the oracle,
the sandbox and, but for the judge's half, by ranks."""
