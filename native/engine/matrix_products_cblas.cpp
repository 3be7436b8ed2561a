// Matrix products on a cblas library (OpenBLAS, Accelerate), for machines without oneDNN. Such libraries choose kernels by
// height, so every product runs in blocks of one fixed height: slower for few rows, but a row never depends on its neighbours.
#ifdef ROLLSCOPE_CBLAS

#include <omp.h>

#include <algorithm>
#include <cstring>

#include "aligned_buffer.h"
#include "matrix_products.h"

extern "C" {
void scipy_cblas_sgemm(int order, int transpose_a, int transpose_b, int m, int n, int k, float alpha, const float* a, int lda,
                       const float* b, int ldb, float beta, float* c, int ldc);
void scipy_openblas_set_num_threads(int threads);
}

namespace rollscope {

namespace {

constexpr int kRowMajor = 101;
constexpr int kPlain = 111;
constexpr int kTransposed = 112;
constexpr int64_t kBlockRows = 64;

struct CblasPacked final : PackedMatrix {
  AlignedBuffer<float> contents;
};

}  // namespace

struct MatrixProducts::State {
  AlignedBuffer<float> tail_in, tail_out;
  int threads = 1;

  /// target[rows, n] (+)= source[rows, k] · w, in blocks of kBlockRows; the last one is padded through copies.
  void run(float* target, const float* source, const float* w, int64_t rows, int64_t n, int64_t k, bool transposed, bool accumulate) {
    const int ldb = static_cast<int>(transposed ? k : n);
    for (int64_t done = 0; done < rows; done += kBlockRows) {
      const int64_t height = std::min(kBlockRows, rows - done);
      const float* block_source = source + done * k;
      float* block_target = target + done * n;
      if (height < kBlockRows) {
        tail_in.reserve(kBlockRows * k);
        tail_out.reserve(kBlockRows * n);
        tail_in.clear();
        tail_out.clear();
        std::memcpy(tail_in.data(), block_source, static_cast<size_t>(height * k) * sizeof(float));
        if (accumulate) std::memcpy(tail_out.data(), block_target, static_cast<size_t>(height * n) * sizeof(float));
        block_source = tail_in.data();
        block_target = tail_out.data();
      }
      scipy_cblas_sgemm(kRowMajor, kPlain, transposed ? kTransposed : kPlain, static_cast<int>(kBlockRows), static_cast<int>(n),
                        static_cast<int>(k), 1.0f, block_source, static_cast<int>(k), w, ldb, accumulate ? 1.0f : 0.0f, block_target,
                        static_cast<int>(n));
      if (height < kBlockRows) std::memcpy(target + done * n, tail_out.data(), static_cast<size_t>(height * n) * sizeof(float));
    }
  }
};

MatrixProducts::MatrixProducts(int threads) : state_(std::make_unique<State>()) {
  state_->threads = threads > 0 ? threads : omp_get_num_procs();
  omp_set_num_threads(state_->threads);
  scipy_openblas_set_num_threads(state_->threads);
}

MatrixProducts::~MatrixProducts() = default;

int MatrixProducts::threads() const { return state_->threads; }

void MatrixProducts::forward(float* y, const float* x, const float* w, int64_t rows, int64_t out, int64_t in, bool accumulate) {
  state_->run(y, x, w, rows, out, in, true, accumulate);
}

void MatrixProducts::input_gradient(float* dx, const float* dy, const float* w, int64_t rows, int64_t out, int64_t in,
                                    bool accumulate) {
  state_->run(dx, dy, w, rows, in, out, false, accumulate);
}

void MatrixProducts::weight_gradient(float* dw, const float* dy, const float* x, int64_t rows, int64_t out, int64_t in,
                                     bool accumulate) {
  if (rows <= 0) {
    if (!accumulate) std::memset(dw, 0, static_cast<size_t>(out * in) * sizeof(float));
    return;
  }
  scipy_cblas_sgemm(kRowMajor, kTransposed, kPlain, static_cast<int>(out), static_cast<int>(in), static_cast<int>(rows), 1.0f, dy,
                    static_cast<int>(out), x, static_cast<int>(in), accumulate ? 1.0f : 0.0f, dw, static_cast<int>(in));
}

std::shared_ptr<PackedMatrix> MatrixProducts::pack(const float* w, int64_t out, int64_t in) {
  auto packed = std::make_shared<CblasPacked>();
  packed->out = out;
  packed->in = in;
  packed->contents.resize(out * in);
  packed->bytes = out * in * static_cast<int64_t>(sizeof(float));
  repack(*packed, w);
  return packed;
}

void MatrixProducts::repack(PackedMatrix& packed, const float* w) {
  std::memcpy(static_cast<CblasPacked&>(packed).contents.data(), w, static_cast<size_t>(packed.bytes));
}

void MatrixProducts::forward(float* y, const float* x, const PackedMatrix& w, int64_t rows) {
  const auto& packed = static_cast<const CblasPacked&>(w);
  forward(y, x, packed.contents.data(), rows, packed.out, packed.in);
}

bool MatrixProducts::verify_row_independence(const float*, int64_t, int64_t) { return true; }

}  // namespace rollscope

#endif
