// Small matrix products inside the attention kernels: C[rows, columns] (+)= A · B with the accumulators in registers.
// Columns are a multiple of kPanelAlignment; A may be read transposed through its two strides.
#pragma once

#include "simd.h"

namespace rollscope::ROLLSCOPE_ISA {

#if defined(__AVX512F__)
inline constexpr int kColumnVectors = 4;  // 6 × 4 accumulators of 32 registers
#else
inline constexpr int kColumnVectors = 2;  // 6 × 2 of 16
#endif
inline constexpr int kBlockRows = 6;

template <int kRows, int kVectors>
inline void register_block(float* c, int64_t ldc, const float* a, int64_t a_row, int64_t a_column, const float* b, int64_t ldb,
                           int64_t depth, bool add) {
  Vec sums[kRows][kVectors];
  for (int r = 0; r < kRows; r++)
    for (int v = 0; v < kVectors; v++) sums[r][v] = add ? load(c + r * ldc + v * kLanes) : Vec{};
  for (int64_t k = 0; k < depth; k++) {
    Vec row[kVectors];
    for (int v = 0; v < kVectors; v++) row[v] = load(b + k * ldb + v * kLanes);
    for (int r = 0; r < kRows; r++) {
      const Vec factor = splat(a[r * a_row + k * a_column]);
      for (int v = 0; v < kVectors; v++) sums[r][v] += factor * row[v];
    }
  }
  for (int r = 0; r < kRows; r++)
    for (int v = 0; v < kVectors; v++) store(c + r * ldc + v * kLanes, sums[r][v]);
}

template <int kVectors>
inline void column_block(float* c, int64_t ldc, const float* a, int64_t a_row, int64_t a_column, const float* b, int64_t ldb,
                         int64_t rows, int64_t depth, bool add) {
  int64_t r = 0;
  for (; r + kBlockRows <= rows; r += kBlockRows)
    register_block<kBlockRows, kVectors>(c + r * ldc, ldc, a + r * a_row, a_row, a_column, b, ldb, depth, add);
  float* rest = c + r * ldc;
  const float* rest_a = a + r * a_row;
  switch (rows - r) {
    case 5: return register_block<5, kVectors>(rest, ldc, rest_a, a_row, a_column, b, ldb, depth, add);
    case 4: return register_block<4, kVectors>(rest, ldc, rest_a, a_row, a_column, b, ldb, depth, add);
    case 3: return register_block<3, kVectors>(rest, ldc, rest_a, a_row, a_column, b, ldb, depth, add);
    case 2: return register_block<2, kVectors>(rest, ldc, rest_a, a_row, a_column, b, ldb, depth, add);
    case 1: return register_block<1, kVectors>(rest, ldc, rest_a, a_row, a_column, b, ldb, depth, add);
    default: return;
  }
}

/// c[rows, columns] (+)= a · b[depth, columns] with a(r, k) = a[r · a_row + k · a_column]. The terms of an element are added in order
/// of k whatever the shape, so an element's bits depend on its row of a and its column of b only.
inline void block_product(float* c, int64_t ldc, const float* a, int64_t a_row, int64_t a_column, const float* b, int64_t ldb,
                          int64_t rows, int64_t columns, int64_t depth, bool add) {
  constexpr int64_t kColumns = kColumnVectors * kLanes;
  int64_t column = 0;
  for (; column + kColumns <= columns; column += kColumns)
    column_block<kColumnVectors>(c + column, ldc, a, a_row, a_column, b + column, ldb, rows, depth, add);
  const int64_t left = (columns - column) / kLanes;
  c += column;
  b += column;
  if (left == 1) return column_block<1>(c, ldc, a, a_row, a_column, b, ldb, rows, depth, add);
#if defined(__AVX512F__)
  if (left == 2) return column_block<2>(c, ldc, a, a_row, a_column, b, ldb, rows, depth, add);
  if (left == 3) return column_block<3>(c, ldc, a, a_row, a_column, b, ldb, rows, depth, add);
#endif
}

}  // namespace rollscope::ROLLSCOPE_ISA
