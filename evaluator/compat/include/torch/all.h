// torch's C++ frontend without modules, optimizers, data loaders and TorchScript.
#pragma once
#include <ATen/Parallel.h>
#include <ATen/core/grad_mode.h>
#include <torch/cuda.h>
#include <torch/types.h>
#include <torch/version.h>
