// Products with packed weights, for few rows. The outputs are cut into one slice a thread and each slice is computed by a kernel
// for one thread: at 64 rows the library's own division over threads leaves a tenth of the time unused. Not thread-safe.
#pragma once

#ifndef ROLLSCOPE_CBLAS

#include <cstdint>
#include <memory>

#include "matrix_products.h"

namespace rollscope {

class SlicedProducts {
 public:
  explicit SlicedProducts(int threads);
  ~SlicedProducts();
  SlicedProducts(const SlicedProducts&) = delete;
  SlicedProducts& operator=(const SlicedProducts&) = delete;

  std::shared_ptr<PackedMatrix> pack(const float* w, int64_t out, int64_t in);
  void repack(PackedMatrix& packed, const float* w);
  /// y[rows, out] = x[rows, in] · wᵀ with kernels made for exactly this number of rows.
  void run(float* y, const float* x, const PackedMatrix& w, int64_t rows);

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace rollscope

#endif
