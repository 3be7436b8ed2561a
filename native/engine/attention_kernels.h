// Declarations of attention_forward.simd.cpp and attention_backward.simd.cpp inside one instruction set's namespace.
#pragma once

#include "attention.h"
#include "simd.h"

namespace rollscope::ROLLSCOPE_ISA {

void attention_forward(float* out, float* log_sums, const float* qkv, const AttentionShape& shape, const AttentionPlan& plan,
                       float* workspace, int threads);
void attention_backward(float* dqkv, const float* dout, const float* out, const float* log_sums, const float* qkv,
                        const AttentionShape& shape, const AttentionPlan& plan, float* workspace, int threads);

}  // namespace rollscope::ROLLSCOPE_ISA
