"""Gives the names that published PKB kernels import: other people's interface, our code.
Imported by submissions alone."""
