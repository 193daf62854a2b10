// torch's own where the source names an operator.
#pragma once
#include <named_in_source.h>
#ifdef OPERATORS_ARE_NAMED
#include_next <torch/csrc/autograd/generated/variable_factories.h>
#endif
