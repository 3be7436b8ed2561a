// One oneDNN kernel a slice; see sliced_products.h.
#ifndef ROLLSCOPE_CBLAS

#include "sliced_products.h"

#include <omp.h>

#include <algorithm>
#include <atomic>
#include <map>
#include <string>
#include <tuple>
#include <vector>

#include "aligned_buffer.h"
#include "engine_error.h"
#include "oneapi/dnnl/dnnl.hpp"

namespace rollscope {

namespace {

using dnnl::memory;

/// Slices are multiples of this and hold at least as many outputs: narrower ones waste the kernels' registers.
constexpr int64_t kSliceUnit = 16;
constexpr int64_t kLeastSlice = 64;
/// Row count that decides how weights are laid out.
constexpr int64_t kTypicalRows = 64;

struct Slice {
  int64_t first = 0;
  int64_t count = 0;
  memory contents;
};

struct SlicedMatrix final : PackedMatrix {
  std::vector<Slice> slices;
};

struct Kernel {
  dnnl::matmul primitive;
  memory source, weights, target, scratchpad;
  AlignedBuffer<uint8_t> scratch;
};

/// Kernels made while this lives are for one thread.
class SingleThreaded {
 public:
  SingleThreaded() : before_(omp_get_max_threads()) { omp_set_num_threads(1); }
  ~SingleThreaded() { omp_set_num_threads(before_); }
  SingleThreaded(const SingleThreaded&) = delete;
  SingleThreaded& operator=(const SingleThreaded&) = delete;

 private:
  const int before_;
};

memory::desc matrix(int64_t rows, int64_t columns, int64_t stride) {
  return memory::desc({rows, columns}, memory::data_type::f32, memory::dims{stride, 1});
}

dnnl::primitive_attr attributes() {
  dnnl::primitive_attr attr;
  attr.set_scratchpad_mode(dnnl::scratchpad_mode::user);
  return attr;
}

EngineError failed(const dnnl::error& error) {
  return EngineError(error.status == dnnl_out_of_memory ? "ENGINE_OUT_OF_MEMORY" : "ENGINE_INTERNAL",
                     std::string("The matrix library failed: ") + error.what() + ".",
                     "Report this with the CPU's name and the model's config.json.");
}

}  // namespace

struct SlicedProducts::State {
  dnnl::engine engine{dnnl::engine::kind::cpu, 0};
  dnnl::stream stream{engine};
  int64_t threads = 1;
  std::map<std::tuple<int64_t, int64_t, int64_t>, memory::desc> layouts;  // outputs of a slice, of the matrix; inputs
  /// rows, outputs of the slice, of the matrix, inputs, slice: slices run at once, so each has memory objects of its own.
  std::map<std::tuple<int64_t, int64_t, int64_t, int64_t, size_t>, Kernel> kernels;

  const memory::desc& layout(int64_t count, int64_t out, int64_t in) {
    const auto key = std::make_tuple(count, out, in);
    const auto found = layouts.find(key);
    if (found != layouts.end()) return found->second;
    const SingleThreaded single;
    const memory::desc any({in, count}, memory::data_type::f32, memory::format_tag::any);
    const dnnl::matmul::primitive_desc chosen(engine, matrix(kTypicalRows, in, in), any, matrix(kTypicalRows, count, out), attributes());
    return layouts.emplace(key, chosen.weights_desc()).first->second;
  }

  Kernel& kernel(int64_t rows, int64_t count, int64_t out, int64_t in, size_t slice) {
    const auto key = std::make_tuple(rows, count, out, in, slice);
    const auto found = kernels.find(key);
    if (found != kernels.end()) return found->second;
    const memory::desc source = matrix(rows, in, in);
    const memory::desc target = matrix(rows, count, out);
    const memory::desc& weights = layout(count, out, in);
    const SingleThreaded single;
    const dnnl::matmul::primitive_desc desc(engine, source, weights, target, attributes());
    Kernel made;
    made.primitive = dnnl::matmul(desc);
    made.source = memory(source, engine, nullptr);
    made.weights = memory(weights, engine, nullptr);
    made.target = memory(target, engine, nullptr);
    made.scratch.resize(static_cast<int64_t>(desc.scratchpad_desc().get_size()));
    made.scratchpad = memory(desc.scratchpad_desc(), engine, made.scratch.data());
    return kernels.emplace(key, std::move(made)).first->second;
  }
};

SlicedProducts::SlicedProducts(int threads) : state_(std::make_unique<State>()) { state_->threads = std::max(threads, 1); }

SlicedProducts::~SlicedProducts() = default;

std::shared_ptr<PackedMatrix> SlicedProducts::pack(const float* w, int64_t out, int64_t in) {
  auto packed = std::make_shared<SlicedMatrix>();
  packed->out = out;
  packed->in = in;
  const int64_t slices = std::clamp<int64_t>(out / kLeastSlice, 1, state_->threads);
  const int64_t width = (out + slices * kSliceUnit - 1) / (slices * kSliceUnit) * kSliceUnit;
  try {
    for (int64_t first = 0; first < out; first += width) {
      const int64_t count = std::min(width, out - first);
      const memory::desc& desc = state_->layout(count, out, in);
      packed->slices.push_back({first, count, memory(desc, state_->engine)});
      packed->bytes += static_cast<int64_t>(desc.get_size());
    }
  } catch (const dnnl::error& error) {
    if (error.status != dnnl_out_of_memory) throw failed(error);
    throw EngineError("ENGINE_OUT_OF_MEMORY", "The engine could not get memory for a packed matrix of " + std::to_string(out * in * 4 >> 20) + " MiB.",
                      "Close other programs or use a smaller model.");
  }
  repack(*packed, w);
  return packed;
}

void SlicedProducts::repack(PackedMatrix& packed, const float* w) {
  auto& target = static_cast<SlicedMatrix&>(packed);
  try {
    for (Slice& slice : target.slices) {
      const memory::desc plain({target.in, slice.count}, memory::data_type::f32, memory::format_tag::ba);
      memory source(plain, state_->engine, const_cast<float*>(w + slice.first * target.in));
      dnnl::reorder(source, slice.contents).execute(state_->stream, source, slice.contents);
      state_->stream.wait();
    }
  } catch (const dnnl::error& error) {
    throw failed(error);
  }
}

void SlicedProducts::run(float* y, const float* x, const PackedMatrix& w, int64_t rows) {
  const auto& matrix = static_cast<const SlicedMatrix&>(w);
  const size_t count = matrix.slices.size();
  std::vector<Kernel*> chosen(count);
  std::atomic<int> status{dnnl_success};
  try {
    for (size_t index = 0; index < count; index++) {
      const Slice& slice = matrix.slices[index];
      chosen[index] = &state_->kernel(rows, slice.count, matrix.out, matrix.in, index);
    }
  } catch (const dnnl::error& error) {
    throw failed(error);
  }
#pragma omp parallel for schedule(static, 1) if (count > 1)
  for (size_t index = 0; index < count; index++) {
    try {
      Kernel& kernel = *chosen[index];
      kernel.source.set_data_handle(const_cast<float*>(x));
      kernel.weights.set_data_handle(matrix.slices[index].contents.get_data_handle());
      kernel.target.set_data_handle(y + matrix.slices[index].first);
      kernel.primitive.execute(state_->stream, {{DNNL_ARG_SRC, kernel.source},
                                                {DNNL_ARG_WEIGHTS, kernel.weights},
                                                {DNNL_ARG_DST, kernel.target},
                                                {DNNL_ARG_SCRATCHPAD, kernel.scratchpad}});
    } catch (const dnnl::error& error) {
      status = error.status;
    }
  }
  if (status != dnnl_success) throw failed(dnnl::error(static_cast<dnnl_status_t>(status.load()), "a product with packed weights"));
}

}  // namespace rollscope

#endif
