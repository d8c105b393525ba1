#include "package/file.h"

#include <fcntl.h>
#include <openssl/evp.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <limits>

#include "package/json.h"
#include "values.h"

namespace tt::runtime::package {

namespace {

constexpr size_t kLengthBytes = 8;
constexpr uint64_t kLongestHeader = 100'000'000;  // the limit of the safetensors library
const std::string kDamaged = "is damaged, or is no package: ";
constexpr const char *kManifest = "tt_torch", *kHash = "sha256", *kMetadata = "__metadata__";

struct Type {
  const char *stored, *manifest;  // the names in the file's header and in the manifest
  DataType dtype;
  int64_t size;  // bytes
};

constexpr Type kTypes[] = {
    {"F64", "float64", DataType::Float64, 8}, {"F32", "float32", DataType::Float32, 4},
    {"F16", "float16", DataType::Float16, 2}, {"BF16", "bfloat16", DataType::BFloat16, 2},
    {"I64", "int64", DataType::Int64, 8},     {"I32", "int32", DataType::Int32, 4},
    {"I16", "int16", DataType::Int16, 2},     {"I8", "int8", DataType::Int8, 1},
    {"U64", "uint64", DataType::UInt64, 8},   {"U32", "uint32", DataType::UInt32, 4},
    {"U16", "uint16", DataType::UInt16, 2},   {"U8", "uint8", DataType::UInt8, 1},
    {"BOOL", "bool", DataType::Bool, 1},
};

const Type& type_named(const std::string& name, const char* Type::* kind, const std::string& who) {
  for (const Type& type : kTypes)
    if (name == type.*kind) return type;
  refuse("needs Python: " + who + " has the type " + name + ", which the C++ library lacks");
}

// The whole file. It is private: a write to this memory does not reach the file.
std::pair<std::shared_ptr<void>, std::span<std::byte>> map_file(const std::string& path) {
  const int file = open(path.c_str(), O_RDONLY | O_CLOEXEC);
  struct stat facts{};
  if (file < 0 || fstat(file, &facts)) {
    const std::string reason = std::strerror(errno);
    if (file >= 0) close(file);
    refuse("cannot be read: " + reason);
  }
  const auto size = static_cast<size_t>(facts.st_size);
  void* start =
      size ? mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_NORESERVE, file, 0) : nullptr;
  const std::string reason = start == MAP_FAILED ? std::strerror(errno) : "";
  close(file);
  if (!reason.empty()) refuse("cannot be mapped: " + reason);
  return {std::shared_ptr<void>(start, [size](void* p) { p&& munmap(p, size); }),
          {static_cast<std::byte*>(start), size}};
}

[[noreturn]] void damaged(const std::string& what) { refuse(kDamaged + what); }

// The bytes of the tensors must follow each other without gaps, as in all files of safetensors.
void require_no_gaps(std::vector<std::pair<int64_t, int64_t>> places, int64_t end) {
  std::sort(places.begin(), places.end());
  int64_t at = 0;
  for (const auto& [from, to] : places) {
    if (from != at) damaged("its tensors overlap, or there are bytes between them");
    at = to;
  }
  if (at != end) damaged("its tensors do not end where the file does");
}

StoredTensor tensor_of(const std::string& name, const Json& entry, std::span<std::byte> bytes) {
  const Type type = type_named(text(part(entry, "dtype")), &Type::stored, name);
  StoredTensor tensor{naturals(part(entry, "shape")), type.dtype, {}};
  const auto offsets = naturals(part(entry, "data_offsets"), std::numeric_limits<int64_t>::max());
  const int64_t size = checked_volume(tensor.shape) * type.size;
  if (offsets.size() != 2 || offsets[1] > static_cast<int64_t>(bytes.size()) || offsets[0] > offsets[1] ||
      offsets[1] - offsets[0] != size)
    damaged(name + " has other offsets than its shape needs");
  tensor.bytes = bytes.subspan(static_cast<size_t>(offsets[0]), static_cast<size_t>(size));
  if (reinterpret_cast<uintptr_t>(tensor.bytes.data()) % static_cast<uintptr_t>(type.size))
    damaged(name + " is not aligned to its elements");
  if (type.dtype == DataType::Bool &&
      std::ranges::any_of(tensor.bytes, [](std::byte b) { return b > std::byte{1}; }))
    damaged(name + " has elements that are neither true nor false");
  return tensor;
}

std::string manifest_of(const Json& header) {
  const auto metadata = header.find(kMetadata);
  if (metadata == header.end() || metadata->size() != 2 || !metadata->contains(kManifest) ||
      !metadata->contains(kHash))
    refuse("is no package of tt_torch: it has no manifest");
  std::string manifest = text((*metadata)[kManifest]);
  if (sha256(std::as_bytes(std::span(manifest))) != text((*metadata)[kHash]))
    refuse("is damaged: its manifest has changed");
  return manifest;
}

}  // namespace

File open_file(const std::string& path) {
  auto [memory, bytes] = map_file(path);
  uint64_t length = 0;
  if (bytes.size() < kLengthBytes) damaged("it has less than 8 bytes");
  std::memcpy(&length, bytes.data(), kLengthBytes);
  if (length > kLongestHeader || length > bytes.size() - kLengthBytes)
    damaged("its header is longer than the file, or than 100 MB");
  const std::string_view head(reinterpret_cast<const char*>(bytes.data()) + kLengthBytes, length);
  const Json header = parse(head, kDamaged);
  if (!header.is_object()) damaged("its header is no JSON object");
  File file{std::move(memory), manifest_of(header), {}};
  const auto contents = bytes.subspan(kLengthBytes + length);
  std::vector<std::pair<int64_t, int64_t>> places;
  for (const auto& [name, entry] : header.items()) {
    if (name == kMetadata) continue;
    const StoredTensor tensor = tensor_of(name, entry, contents);
    const int64_t from = tensor.bytes.data() - contents.data();
    places.emplace_back(from, from + static_cast<int64_t>(tensor.bytes.size()));
    file.tensors.emplace(name, tensor);
  }
  require_no_gaps(std::move(places), static_cast<int64_t>(contents.size()));
  return file;
}

DataType dtype_named(const std::string& name, const std::string& who) {
  return type_named(name, &Type::manifest, who).dtype;
}

std::string sha256(std::span<const std::byte> bytes) {
  unsigned char digest[EVP_MAX_MD_SIZE];
  unsigned int size = 0;
  if (!EVP_Digest(bytes.data(), bytes.size(), digest, &size, EVP_sha256(), nullptr))
    refuse("cannot be checked: the OpenSSL library does not compute SHA-256");
  std::string text;
  for (unsigned int i = 0; i < size; ++i)
    for (const int digit : {digest[i] >> 4, digest[i] & 15}) text += "0123456789abcdef"[digit];
  return text;
}

}  // namespace tt::runtime::package
