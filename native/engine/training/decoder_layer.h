// One transformer layer, forward and backward, over a forest. Reads weights, writes a tape; it must never keep anything itself.
#pragma once

#include "kernels.h"
#include "matrix_products.h"
#include "model.h"
#include "training/activations.h"
#include "training/forest_plan.h"

namespace rollscope {

/// What a pass over the layers works on.
struct LayerPass {
  MatrixProducts& products;
  const Model& model;
  const float* weights;    // an arena of the model's layout
  const Batch& batch;
  const ForestPlan& plan;
  const float* cos_sin;    // RopeTable::table
  const LayerScratch& scratch;

  int64_t tokens() const { return batch.size(); }
};

/// scratch.normed holds norm(tape.input). Fills the tape; scratch.delta becomes the layer's last addend: the residual stream behind the
/// layer is tape.middle + scratch.delta. Without `output` that last product is left out (recomputation for the backward pass).
void layer_forward(const LayerPass& pass, int64_t layer, const LayerTape& tape, bool output);

/// scratch.gradient: gradient of the residual stream behind the layer in, before the layer out. Adds to `gradients`, an arena of the
/// model's layout. Destroys the tape.
void layer_backward(const LayerPass& pass, int64_t layer, const LayerTape& tape, float* gradients);

/// scratch.normed = norm(tape.input) for a layer whose input is there already.
void layer_norm_input(const LayerPass& pass, int64_t layer, const LayerTape& tape);

}  // namespace rollscope
