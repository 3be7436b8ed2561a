// Numbers of one AdamW step (Loshchilov and Hutter 2019, decoupled decay), already in the form the kernel wants.
#pragma once

namespace rollscope {

/// p ← p · keep; m ← β₁ m + (1 − β₁) g; v ← β₂ v + (1 − β₂) g²; p ← p − rate · m / (√v · second_scale + ε), where g is scaled by `clip`,
/// keep = 1 − lr · decay, rate = lr / (1 − β₁ᵗ), second_scale = 1 / √(1 − β₂ᵗ).
struct AdamwNumbers {
  float clip = 1.0f;
  float keep = 1.0f;
  float beta1 = 0.9f;
  float beta2 = 0.999f;
  float one_minus_beta1 = 0.1f;
  float one_minus_beta2 = 0.001f;
  float rate = 0.0f;
  float second_scale = 1.0f;
  float epsilon = 1e-8f;
};

}  // namespace rollscope
