// Matrix products from oneDNN (x86-64) or cblas (elsewhere), behind the four shapes a transformer needs. Every product of
// one weight matrix adds its terms in one fixed order, so a row of the result does not depend on the number of rows;
// `verify_row_independence` checks that on the CPU at hand.
#pragma once

#include <cstdint>
#include <memory>

namespace rollscope {

/// A weight matrix [out, in] reordered once for products with few rows (generation). Valid until the weights change.
class PackedMatrix;

class MatrixProducts {
 public:
  explicit MatrixProducts(int threads);
  ~MatrixProducts();
  MatrixProducts(const MatrixProducts&) = delete;
  MatrixProducts& operator=(const MatrixProducts&) = delete;

  /// y[rows, out] = x[rows, in] · wᵀ, w[out, in]. `accumulate` adds to y instead. Leading dimensions equal the widths unless given.
  void forward(float* y, const float* x, const float* w, int64_t rows, int64_t out, int64_t in, bool accumulate = false);
  /// dx[rows, in] = dy[rows, out] · w.
  void input_gradient(float* dx, const float* dy, const float* w, int64_t rows, int64_t out, int64_t in, bool accumulate = false);
  /// dw[out, in] += dyᵀ · x.
  void weight_gradient(float* dw, const float* dy, const float* x, int64_t rows, int64_t out, int64_t in);

  std::shared_ptr<const PackedMatrix> pack(const float* w, int64_t out, int64_t in);
  /// Reorder new contents into an existing packing (after an optimizer step).
  void repack(PackedMatrix& packed, const float* w);
  /// As `forward`, with the same bits for the same row.
  void forward(float* y, const float* x, const PackedMatrix& w, int64_t rows);

  /// Largest row count served by one kernel whose results were checked to be row independent on this CPU.
  bool verify_row_independence(int64_t out, int64_t in);

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace rollscope
