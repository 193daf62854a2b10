"""Kernels for GPUs, honest and hostile: the GPU judge's specification, as headers say it."""
