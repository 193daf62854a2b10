// The tensor, and of ATen's thousands of operators those that the source names. Methods of a tensor
// are all there. With this macro torch's own headers include single operators instead of all.
#pragma once
#include <ATen/Dispatch.h>
#include <ATen/Formatting.h>
#include <ATen/core/Tensor.h>
#include <named_in_source.h>
