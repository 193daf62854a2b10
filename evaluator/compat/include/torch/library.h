// torch's own where the source registers operators.
#pragma once
#include <named_in_source.h>
#ifdef LIBRARY_IS_NAMED
#include_next <torch/library.h>
#endif
