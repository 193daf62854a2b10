"""Measures what the GPUs of a host reach, beside their datasheet. Imported by the command line."""
