// Matrix products on oneDNN: one primitive per shape, created once and kept. Weights stay in their Hugging Face layout
// unless they were packed. See matrix_products.h for the promises.
#ifndef ROLLSCOPE_CBLAS

#include <omp.h>

#include <algorithm>
#include <cstring>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "aligned_buffer.h"
#include "engine_error.h"
#include "kernels.h"
#include "matrix_products.h"
#include "oneapi/dnnl/dnnl.hpp"
#include "sliced_products.h"

namespace rollscope {

namespace {

using dnnl::memory;

/// Row counts that get a kernel of their own. Rows beyond the last whole one are computed in a padded block.
constexpr int64_t kFullBlock = 64;
constexpr size_t kMostKernels = 1024;
/// Heights to fall back to where row independence could not be shown, best first; what lies beside one row cannot change it.
constexpr int64_t kFallbackRows[] = {64, 32, 16, 8, 4, 2, 1};

int64_t small_bucket(int64_t rows) {
  int64_t bucket = 1;
  while (bucket < rows) bucket *= 2;
  return bucket;
}

/// Holds oneDNN to the instructions that the other passes are held to. It listens until its first primitive is made.
void follow_kernels() {
  const std::string_view name = kernels().name;
  if (name == "avx2") dnnl::set_max_cpu_isa(dnnl::cpu_isa::avx2);
  if (name == "sse") dnnl::set_max_cpu_isa(dnnl::cpu_isa::sse41);
}

enum class Kind : int64_t { forward = 0, forward_packed = 1, input_gradient = 2, weight_gradient = 3 };

struct Shape {
  Kind kind;
  bool accumulate;
  int64_t rows, out, in;
  bool operator==(const Shape&) const = default;
};

struct ShapeHash {
  size_t operator()(const Shape& shape) const {
    uint64_t hash = static_cast<uint64_t>(shape.kind) * 2 + (shape.accumulate ? 1 : 0);
    for (const int64_t part : {shape.rows, shape.out, shape.in}) {
      hash = (hash ^ static_cast<uint64_t>(part)) * 0x9e3779b97f4a7c15ull;
      hash ^= hash >> 29;
    }
    return hash;
  }
};

/// How the rows of a product are put together so that none depends on another or on its place. 0: any number of rows at once.
struct RowBlocks {
  int64_t forward = 0;
  int64_t packed = 0;
};

struct Product {
  dnnl::matmul primitive;
  memory source, weights, target;
  size_t scratch = 0;
  memory::desc scratch_desc;
};

memory::desc matrix(int64_t rows, int64_t columns, memory::format_tag tag = memory::format_tag::ab) {
  return memory::desc({rows, columns}, memory::data_type::f32, tag);
}

}  // namespace

struct MatrixProducts::State {
  dnnl::engine engine{dnnl::engine::kind::cpu, 0};
  dnnl::stream stream{engine};
  std::unordered_map<Shape, Product, ShapeHash> products;
  SlicedProducts sliced;
  std::unordered_map<Shape, RowBlocks, ShapeHash> verified;
  AlignedBuffer<uint8_t> scratch;
  AlignedBuffer<float> tail_in, tail_out;
  int threads;

  explicit State(int count) : sliced(count), threads(count) {}

  memory attach(const memory::desc& desc) { return memory(desc, engine, nullptr); }

  dnnl::primitive_attr attributes(bool accumulate) {
    dnnl::primitive_attr attr;
    attr.set_scratchpad_mode(dnnl::scratchpad_mode::user);
    if (accumulate) {
      dnnl::post_ops sum;
      sum.append_sum(1.0f);
      attr.set_post_ops(sum);
    }
    return attr;
  }

  Product& product(const Shape& shape) {
    const auto found = products.find(shape);
    if (found != products.end()) return found->second;
    // Gradients of weights come in every batch size there is; making a kernel again is a fraction of a millisecond.
    if (products.size() >= kMostKernels) products.clear();
    memory::desc source, weights, target;
    switch (shape.kind) {
      case Kind::forward:
        source = matrix(shape.rows, shape.in);
        weights = matrix(shape.in, shape.out, memory::format_tag::ba);
        target = matrix(shape.rows, shape.out);
        break;
      case Kind::forward_packed:
        break;  // SlicedProducts has kernels of its own
      case Kind::input_gradient:
        source = matrix(shape.rows, shape.out);
        weights = matrix(shape.out, shape.in);
        target = matrix(shape.rows, shape.in);
        break;
      case Kind::weight_gradient:
        source = matrix(shape.out, shape.rows, memory::format_tag::ba);
        weights = matrix(shape.rows, shape.in);
        target = matrix(shape.out, shape.in);
        break;
    }
    const dnnl::matmul::primitive_desc desc(engine, source, weights, target, attributes(shape.accumulate));
    Product made;
    made.primitive = dnnl::matmul(desc);
    made.source = attach(source);
    made.weights = attach(weights);
    made.target = attach(target);
    made.scratch_desc = desc.scratchpad_desc();
    made.scratch = made.scratch_desc.get_size();
    return products.emplace(shape, std::move(made)).first->second;
  }

  /// `weights` is a PackedMatrix for packed products, else its floats.
  void run(const Shape& shape, float* target, const float* source, const void* weights) {
    if (shape.kind == Kind::forward_packed) {
      sliced.run(target, source, *static_cast<const PackedMatrix*>(weights), shape.rows);
      return;
    }
    try {
      Product& chosen = product(shape);
      chosen.source.set_data_handle(const_cast<float*>(source));
      chosen.weights.set_data_handle(const_cast<void*>(weights));
      chosen.target.set_data_handle(target);
      if (static_cast<int64_t>(chosen.scratch) > scratch.size()) scratch.resize(static_cast<int64_t>(chosen.scratch));
      chosen.primitive.execute(stream, {{DNNL_ARG_SRC, chosen.source},
                                        {DNNL_ARG_WEIGHTS, chosen.weights},
                                        {DNNL_ARG_DST, chosen.target},
                                        {DNNL_ARG_SCRATCHPAD, memory(chosen.scratch_desc, engine, scratch.data())}});
      stream.wait();
    } catch (const dnnl::error& error) {
      throw EngineError(error.status == dnnl_out_of_memory ? "ENGINE_OUT_OF_MEMORY" : "ENGINE_INTERNAL",
                        std::string("The matrix library failed: ") + error.what() + ".",
                        "Report this with the CPU's name and the model's config.json.");
    }
  }

  /// Computes the last `rows` rows in a block padded to `height`, through copies: callers' buffers are never overrun.
  void run_padded(Shape shape, int64_t height, float* target, const float* source, const void* weights, int64_t source_width,
                  int64_t target_width, bool accumulate) {
    const int64_t rows = shape.rows;
    tail_in.reserve(height * source_width);
    tail_out.reserve(height * target_width);
    std::memcpy(tail_in.data(), source, static_cast<size_t>(rows * source_width) * sizeof(float));
    std::memset(tail_in.data() + rows * source_width, 0, static_cast<size_t>((height - rows) * source_width) * sizeof(float));
    const size_t result_bytes = static_cast<size_t>(rows * target_width) * sizeof(float);
    if (accumulate) {
      std::memcpy(tail_out.data(), target, result_bytes);
      std::memset(tail_out.data() + rows * target_width, 0, static_cast<size_t>((height - rows) * target_width) * sizeof(float));
    }
    shape.rows = height;
    run(shape, tail_out.data(), tail_in.data(), weights);
    std::memcpy(target, tail_out.data(), result_bytes);
  }

  /// Only the outputs of a model are promised to be independent; gradients go by what is fastest.
  int64_t block_of(Kind kind, int64_t out, int64_t in) const {
    const auto found = verified.find({Kind::forward, false, 0, out, in});
    if (found == verified.end()) return 0;
    if (kind == Kind::forward) return found->second.forward;
    return kind == Kind::forward_packed ? found->second.packed : 0;
  }

  void run_rows(Kind kind, float* target, const float* source, const void* weights, int64_t rows, int64_t out, int64_t in,
                bool accumulate) {
    const int64_t source_width = kind == Kind::input_gradient ? out : in;
    const int64_t target_width = kind == Kind::input_gradient ? in : out;
    const int64_t block = block_of(kind, out, in);
    int64_t done = 0;
    if (block == 0) {
      const int64_t whole = rows / kFullBlock * kFullBlock;
      if (whole > 0) run({kind, accumulate, whole, out, in}, target, source, weights);
      done = whole;
    } else {
      for (; done + block <= rows; done += block) {
        run({kind, accumulate, block, out, in}, target + done * target_width, source + done * source_width, weights);
      }
    }
    const int64_t left = rows - done;
    if (left <= 0) return;
    // One row alone goes another way through the library, with sums in another order, where kernels are for one thread.
    const int64_t least = kind == Kind::forward_packed ? 2 : 1;
    const int64_t height = block == 0 ? std::max(small_bucket(left), least) : block;
    float* tail_target = target + done * target_width;
    const float* tail_source = source + done * source_width;
    if (height == left) {
      run({kind, accumulate, left, out, in}, tail_target, tail_source, weights);
    } else {
      run_padded({kind, accumulate, left, out, in}, height, tail_target, tail_source, weights, source_width, target_width, accumulate);
    }
  }
};

MatrixProducts::MatrixProducts(int threads) : state_(std::make_unique<State>(threads > 0 ? threads : omp_get_num_procs())) {
  omp_set_num_threads(state_->threads);
  follow_kernels();
}

MatrixProducts::~MatrixProducts() = default;

int MatrixProducts::threads() const { return state_->threads; }

void MatrixProducts::forward(float* y, const float* x, const float* w, int64_t rows, int64_t out, int64_t in, bool accumulate) {
  state_->run_rows(Kind::forward, y, x, w, rows, out, in, accumulate);
}

void MatrixProducts::input_gradient(float* dx, const float* dy, const float* w, int64_t rows, int64_t out, int64_t in,
                                    bool accumulate) {
  state_->run_rows(Kind::input_gradient, dx, dy, w, rows, out, in, accumulate);
}

void MatrixProducts::weight_gradient(float* dw, const float* dy, const float* x, int64_t rows, int64_t out, int64_t in,
                                     bool accumulate) {
  if (rows <= 0) {
    if (!accumulate) std::memset(dw, 0, static_cast<size_t>(out * in) * sizeof(float));
    return;
  }
  state_->run({Kind::weight_gradient, accumulate, rows, out, in}, dw, dy, x);
}

std::shared_ptr<PackedMatrix> MatrixProducts::pack(const float* w, int64_t out, int64_t in) { return state_->sliced.pack(w, out, in); }

void MatrixProducts::repack(PackedMatrix& packed, const float* w) { state_->sliced.repack(packed, w); }

void MatrixProducts::forward(float* y, const float* x, const PackedMatrix& w, int64_t rows) {
  state_->run_rows(Kind::forward_packed, y, x, &w, rows, w.out, w.in, false);
}

bool MatrixProducts::verify_row_independence(const float* w, int64_t out, int64_t in) {
  const Shape key{Kind::forward, false, 0, out, in};
  const auto known = state_->verified.find(key);
  if (known != state_->verified.end()) return known->second.forward == 0 && known->second.packed == 0;
  const int64_t most = out * in > (int64_t{1} << 23) ? 128 : 1024;  // a vocabulary's matrix would take seconds otherwise
  const bool large = most < 1024;
  AlignedBuffer<float> x(most * in), reference(most * out), y(most * out);
  uint32_t noise = 12345;
  const auto fill = [&](int64_t count) {
    for (int64_t i = 0; i < count; i++) {
      noise = noise * 1664525u + 1013904223u;
      x.data()[i] = static_cast<float>(noise >> 8) / 8388608.0f - 1.0f;
    }
  };
  fill(most * in);
  const auto is_independent = [&](const auto& product) {
    product(reference.data(), x.data(), most);
    const auto agrees = [&](int64_t first, int64_t rows) {
      product(y.data(), x.data() + first * in, rows);
      return std::memcmp(y.data(), reference.data() + first * out, static_cast<size_t>(rows * out) * sizeof(float)) == 0;
    };
    for (const int64_t rows : {int64_t{1}, int64_t{2}, int64_t{7}, int64_t{16}, int64_t{32}, int64_t{64}, int64_t{192}, int64_t{512}}) {
      if (rows > most || (large && (rows == 2 || rows == 16 || rows == 32))) continue;
      if (!agrees(0, rows)) return false;
    }
    // Where a row lies in its block must not matter either.
    return agrees(5, 7) && agrees(23, 64) && (large || (agrees(1, 1) && agrees(63, 32)));
  };
  /// The greatest height at which one row gives the same bits in every place.
  const auto fallback = [&](const auto& product) {
    for (const int64_t block : kFallbackRows) {
      bool uniform = true;
      for (int repeat = 0; repeat < 4 && uniform; repeat++) {
        fill(in);
        for (int64_t row = 1; row < block; row++) std::memcpy(x.data() + row * in, x.data(), static_cast<size_t>(in) * sizeof(float));
        product(y.data(), block);
        for (int64_t row = 1; row < block; row++) {
          uniform = uniform && std::memcmp(y.data(), y.data() + row * out, static_cast<size_t>(out) * sizeof(float)) == 0;
        }
      }
      if (uniform) return block;
    }
    return int64_t{1};
  };
  const std::shared_ptr<PackedMatrix> matrix = pack(w, out, in);
  RowBlocks blocks;
  if (!is_independent([&](float* to, const float* from, int64_t rows) { forward(to, from, w, rows, out, in); })) {
    blocks.forward = fallback([&](float* to, int64_t rows) { state_->run({Kind::forward, false, rows, out, in}, to, x.data(), w); });
    fill(most * in);
  }
  if (!is_independent([&](float* to, const float* from, int64_t rows) { forward(to, from, *matrix, rows); })) {
    blocks.packed = fallback([&](float* to, int64_t rows) { state_->sliced.run(to, x.data(), *matrix, rows); });
  }
  state_->verified.emplace(key, blocks);
  return blocks.forward == 0 && blocks.packed == 0;
}

}  // namespace rollscope

#endif
