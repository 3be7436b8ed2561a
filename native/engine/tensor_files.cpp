// Positioned reads and sequential writes of tensor_files.h.
#include "tensor_files.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cmath>
#include <cstring>

#include "engine_error.h"
#include "tensor_types.h"

namespace rollscope {

namespace {

constexpr int64_t kPieceBytes = int64_t{8} << 20;

/// Owns a file descriptor.
class File {
 public:
  File(const std::string& path, int flags, int mode) : path_(path), descriptor_(::open(path.c_str(), flags | O_CLOEXEC, mode)) {}
  ~File() {
    if (descriptor_ >= 0) ::close(descriptor_);
  }
  File(File&& other) noexcept : path_(std::move(other.path_)), descriptor_(other.descriptor_) { other.descriptor_ = -1; }
  File(const File&) = delete;
  File& operator=(const File&) = delete;

  bool is_open() const { return descriptor_ >= 0; }
  int descriptor() const { return descriptor_; }
  const std::string& path() const { return path_; }

  void read(uint8_t* to, int64_t offset, int64_t bytes) const {
    while (bytes > 0) {
      const ssize_t got = ::pread(descriptor_, to, static_cast<size_t>(bytes), offset);
      if (got < 0 && errno == EINTR) continue;
      if (got <= 0) {
        throw EngineError("ENGINE_FILE_TRUNCATED",
                          "The model file " + path_ + " ends before byte " + std::to_string(offset + bytes) + ", which its header promises.",
                          "Fetch the file again; the download did not finish.");
      }
      to += got;
      offset += got;
      bytes -= got;
    }
  }

 private:
  std::string path_;
  int descriptor_;
};

/// Row of a head in Hugging Face order for a row in interleaved order.
int64_t plain_row(int64_t row, int64_t head_rows) {
  const int64_t head = row / head_rows, within = row % head_rows;
  return head * head_rows + within % 2 * (head_rows / 2) + within / 2;
}

void read_tensor(float* to, const TensorSlot& slot, const TensorSource& source, const File& file, std::vector<uint8_t>& piece,
                 const CancelToken& cancel) {
  const TensorTypeInfo& type = tensor_type(source.type);
  const int64_t columns = slot.shape.back();
  const int64_t rows = slot.size / columns;
  if (columns % type.block != 0 || source.bytes != slot.size / type.block * type.block_bytes) {
    throw EngineError("ENGINE_SHAPE_MISMATCH",
                      "The tensor " + slot.name + " takes " + std::to_string(source.bytes) + " bytes in " + file.path() + ", not " +
                          std::to_string(slot.size / type.block * type.block_bytes) + ".",
                      "Check that the file belongs to this config.json.");
  }
  const int64_t row_bytes = columns / type.block * type.block_bytes;
  const int64_t piece_rows = std::max<int64_t>(1, kPieceBytes / row_bytes);
  const int64_t head_rows = source.interleaved_heads > 0 ? rows / source.interleaved_heads : 0;
  bool finite = true;
  for (int64_t first = 0; first < rows; first += piece_rows) {
    cancel.throw_if_raised();
    const int64_t count = std::min(piece_rows, rows - first);
    piece.resize(static_cast<size_t>(count * row_bytes));
    file.read(piece.data(), source.offset + first * row_bytes, count * row_bytes);
#pragma omp parallel for schedule(static) reduction(&& : finite)
    for (int64_t row = 0; row < count; row++) {
      const int64_t target = head_rows > 0 ? plain_row(first + row, head_rows) : first + row;
      float* values = to + target * columns;
      dequantise(values, piece.data() + row * row_bytes, columns, type.type);
      // x − x is 0 for every finite number and NaN for the others.
      float residue = 0.0f;
      for (int64_t i = 0; i < columns; i++) residue += values[i] - values[i];
      finite = finite && residue == 0.0f;
    }
  }
  if (!finite) {
    throw EngineError("ENGINE_NON_FINITE", "The tensor " + slot.name + " in " + file.path() + " holds NaN or infinity.",
                      "Fetch the model again or use another checkpoint.");
  }
}

}  // namespace

void read_tensors(Arena& arena, const ParameterLayout& layout, const std::vector<std::string>& paths,
                  const std::vector<TensorSource>& sources, const CancelToken& cancel) {
  std::vector<File> files;
  files.reserve(paths.size());
  for (const std::string& path : paths) {
    files.emplace_back(path, O_RDONLY, 0);
    if (!files.back().is_open()) {
      throw EngineError("ENGINE_MODEL_NOT_FOUND", "The model file " + path + " cannot be opened: " + std::strerror(errno) + ".",
                        "Check the path and its permissions.");
    }
  }
  std::vector<uint8_t> piece;
  for (const TensorSource& source : sources) {
    const TensorSlot* slot = layout.find(source.tensor);
    if (slot == nullptr) {
      throw EngineError("ENGINE_TENSOR_MISSING", "The model has no tensor named " + source.tensor + ".",
                        "Check that the file belongs to this config.json.");
    }
    read_tensor(arena.data() + slot->offset, *slot, source, files.at(static_cast<size_t>(source.file)), piece, cancel);
  }
}

void write_tensors(const std::string& path, const std::string& header, const std::vector<TensorPart>& parts, const CancelToken& cancel) {
  const auto fail = [&path](const char* what) {
    throw EngineError("ENGINE_SAVE_FAILED", "The file " + path + " cannot be " + what + ": " + std::strerror(errno) + ".",
                      "Free disk space or choose a folder that can be written.");
  };
  const File file(path, O_WRONLY | O_CREAT | O_TRUNC, 0644);
  if (!file.is_open()) fail("created");
  const auto write = [&](const uint8_t* from, int64_t bytes) {
    while (bytes > 0) {
      cancel.throw_if_raised();
      const ssize_t put = ::write(file.descriptor(), from, static_cast<size_t>(std::min(bytes, kPieceBytes)));
      if (put < 0 && errno == EINTR) continue;
      if (put <= 0) fail("written");
      from += put;
      bytes -= put;
    }
  };
  write(reinterpret_cast<const uint8_t*>(header.data()), static_cast<int64_t>(header.size()));
  for (const TensorPart& part : parts) write(reinterpret_cast<const uint8_t*>(part.data), part.size * static_cast<int64_t>(sizeof(float)));
  if (::fsync(file.descriptor()) != 0) fail("flushed to the disk");
}

}  // namespace rollscope
