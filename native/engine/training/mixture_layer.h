// A mixture of experts in place of the MLP: a linear router, softmax over its logits, the k best experts a token, their outputs
// mixed. Rows are grouped by expert so that each expert is one product; a token's sum always runs over its experts in the
// order of their weight, so its bits do not depend on the batch.
#pragma once

#include "training/decoder_layer.h"

namespace rollscope {

/// From scratch.normed to scratch.delta. Fills tape.gate_up, probabilities, mix and experts; forced experts come from the batch.
void mixture_forward(const LayerPass& pass, int64_t layer, const LayerTape& tape, bool output);

/// scratch.normed holds the layer's normed input, scratch.gradient the gradient of its output; scratch.delta becomes the gradient
/// of the normed input.
void mixture_backward(const LayerPass& pass, int64_t layer, const LayerTape& tape, float* gradients);

}  // namespace rollscope
