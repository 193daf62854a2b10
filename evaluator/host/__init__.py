"""Describes and reserves the judging host: its GPUs, cores, cgroups and processes. Imported by
all folders above it."""
