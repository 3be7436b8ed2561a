// Matrix products from oneDNN (x86-64) or cblas (elsewhere), behind the four shapes a transformer needs. The terms of one
// element are added in one fixed order, so a row of a result does not depend on how many rows are computed beside it;
// `verify_row_independence` checks that on the CPU at hand and falls back to blocks of one fixed height where it fails.
// Not thread-safe: everything runs on the compute thread.
#pragma once

#include <cstdint>
#include <memory>

namespace rollscope {

/// A weight matrix [out, in] reordered once for products with few rows (generation). Valid until the weights change.
class PackedMatrix {
 public:
  virtual ~PackedMatrix() = default;
  int64_t out = 0;
  int64_t in = 0;
  int64_t bytes = 0;
};

class MatrixProducts {
 public:
  /// 0 threads: all that the process may use. Sets the OpenMP thread count of the calling thread.
  explicit MatrixProducts(int threads);
  ~MatrixProducts();
  MatrixProducts(const MatrixProducts&) = delete;
  MatrixProducts& operator=(const MatrixProducts&) = delete;

  int threads() const;

  /// y[rows, out] = x[rows, in] · wᵀ, w[out, in]. `accumulate` adds to y instead. Any number of rows; no padding needed.
  void forward(float* y, const float* x, const float* w, int64_t rows, int64_t out, int64_t in, bool accumulate = false);
  /// dx[rows, in] = dy[rows, out] · w.
  void input_gradient(float* dx, const float* dy, const float* w, int64_t rows, int64_t out, int64_t in, bool accumulate = false);
  /// dw[out, in] += dyᵀ · x; without `accumulate` dw is overwritten.
  void weight_gradient(float* dw, const float* dy, const float* x, int64_t rows, int64_t out, int64_t in, bool accumulate = true);

  std::shared_ptr<PackedMatrix> pack(const float* w, int64_t out, int64_t in);
  /// Reorder new contents into an existing packing (after an optimizer step).
  void repack(PackedMatrix& packed, const float* w);
  /// As `forward`. Rows do not depend on each other here either, but their bits may differ from those of the other `forward`.
  void forward(float* y, const float* x, const PackedMatrix& w, int64_t rows);

  /// Computes rows of random numbers in heights from 1 to 1024 and in other places, packed and unpacked, and compares bits. On a
  /// difference later products of that kind and shape run in blocks of one height, at which neither a row's neighbours nor its
  /// place matter. True when no fallback was needed. Verified shapes are remembered.
  bool verify_row_independence(const float* w, int64_t out, int64_t in);

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace rollscope
