// From the last layer's states to log-probabilities, entropies and values, and back. Logits exist only for states that predict
// a wanted token, and only a chunk of rows at a time unless all of them fit a bounded budget.
#pragma once

#include <cstdint>
#include <vector>

#include "aligned_buffer.h"
#include "cancel_token.h"
#include "kernels.h"
#include "matrix_products.h"
#include "model.h"
#include "training/forest_plan.h"

namespace rollscope {

struct Outputs {
  bool logprob = false;
  bool entropy = false;
  bool value = false;

  bool distribution() const { return logprob || entropy; }
};

/// [n] each, or empty; NaN where nothing was wanted.
struct Scalars {
  std::vector<float> logprob, entropy, value;
};

/// d loss / d scalar, [n] each, or empty for zero.
struct Cotangents {
  std::vector<float> logprob, entropy, value;
};

/// What the backward pass of one batch needs of the head.
struct HeadTape {
  AlignedBuffer<float> states;    // [states, hidden] residual stream of the predicting states
  AlignedBuffer<float> normed;    // [states, hidden] after the final norm
  AlignedBuffer<float> inputs;    // [rows, hidden] divided by temperature; unused when rows are states
  AlignedBuffer<float> logits;    // a chunk, or all rows when `keeps_logits`
  AlignedBuffer<float> gradient;  // backward only: [rows, hidden]
  AlignedBuffer<float> state_gradient;  // backward only: [states, hidden]
  std::vector<LogitStatistics> statistics;  // [rows]
  bool keeps_logits = false;

  int64_t bytes() const;
  void clear();
};

struct HeadPass {
  MatrixProducts& products;
  const Model& model;
  const float* weights;
  const Batch& batch;
  const ForestPlan& plan;
  const CancelToken& cancel;
};

/// Rows of logits in one chunk.
int64_t head_chunk_rows(const ModelConfig& config);
/// Floats the head needs at most for so many rows.
int64_t head_floats(const ModelConfig& config, int64_t rows, bool keeps_logits, bool backward);

/// `middle` + `delta` [n, hidden] is the last layer's output. Throws ENGINE_NON_FINITE.
Scalars head_forward(const HeadPass& pass, HeadTape& tape, const float* middle, const float* delta, const Outputs& want, bool keep_logits);

/// Writes the gradient of the last layer's output to gradient[n, hidden] and adds those of head, final norm and value head.
void head_backward(const HeadPass& pass, HeadTape& tape, const Cotangents& cotangents, float* gradient, float* gradients);

}  // namespace rollscope
