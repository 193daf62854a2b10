"""Lets published kernels find the names, headers and compiler that they expect. Imported by
submissions alone, which reach it by their search path."""
