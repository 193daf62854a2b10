// Tensors, devices, dtypes and scalars as arguments and results of Python functions.
#pragma once
#include <torch/csrc/Exceptions.h>
#include <torch/csrc/utils/pybind.h>
#include <torch/types.h>
