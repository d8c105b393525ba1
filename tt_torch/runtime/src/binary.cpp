#include "tt/runtime/binary.h"

#include <algorithm>
#include <fstream>
#include <iterator>

#include "binary_impl.h"
#include "tt/runtime/error.h"
#include "values.h"

namespace tt::runtime {

namespace {

[[noreturn]] void damaged(const std::string& what) {
  throw Error(ErrorKind::BinaryFormat, "not a valid TTNN binary: " + what);
}

wire::Record required(const wire::Record& record, const char* field) {
  auto value = record.record(field);
  if (!value) damaged(std::string(record.type_name()) + " has no field " + field);
  return *value;
}

constexpr int64_t kMostCores = 4096;

ShardSpec decode_shard(const wire::Record& record) {
  ShardSpec shard;
  const auto shape = record.integers("shape");
  if (shape.size() < 2) damaged("a shard has fewer than two dimensions");
  shard.height = 1;
  for (size_t i = 0; i + 1 < shape.size(); ++i)
    if (shape[i] < 1 || __builtin_mul_overflow(shard.height, shape[i], &shard.height))
      damaged("the size of a shard is invalid");
  shard.width = shape.back();
  const auto ranges = required(record, "core_range_set").records("core_ranges");
  for (const auto& range : ranges) {
    const auto start = required(range, "start_coord"), end = required(range, "end_coord");
    for (const auto& corner : {start, end})
      for (const char* axis : {"x", "y"})
        if (corner.integer(axis) < 0 || corner.integer(axis) > kMostCores)
          damaged("a core range out of bounds");
    const int64_t width = end.integer("x") - start.integer("x") + 1;
    const int64_t height = end.integer("y") - start.integer("y") + 1;
    if (width < 1 || height < 1 || width > 64 || height > 64)
      damaged("a core range is not 1 to 64 cores wide and high");
    shard.cores += width * height;
  }
  if (shard.width < 1 || shard.height > 1 << 28 || shard.width > 1 << 28 || shard.cores > kMostCores)
    damaged("the size of a shard is invalid");
  return shard;
}

constexpr wire::Named<MemoryLayout> memory_layouts[] = {{"Interleaved", MemoryLayout::Interleaved},
                                                        {"HeightSharded", MemoryLayout::HeightSharded},
                                                        {"WidthSharded", MemoryLayout::WidthSharded},
                                                        {"BlockSharded", MemoryLayout::BlockSharded},
                                                        {"NDSharded", MemoryLayout::NdSharded}};

constexpr wire::Named<BufferType> buffer_types[] = {{"DRAM", BufferType::Dram},
                                                    {"L1", BufferType::L1},
                                                    {"SystemMemory", BufferType::Host},
                                                    {"L1Small", BufferType::L1},
                                                    {"Trace", BufferType::Dram}};

constexpr wire::Named<bool> on_device[] = {{"Host", false}, {"Device", true}};

void decode_memory_config(const wire::Record& config, TensorSpec& spec) {
  spec.memory_layout = config.choose("tensor_memory_layout", memory_layouts);
  spec.buffer = config.choose("buffer_type", buffer_types);
  if (auto shard = config.record("shard_spec"))
    spec.shard = decode_shard(*shard);
  else if (auto nd = config.record("nd_shard_spec"))
    spec.shard = decode_shard(*nd);
}

std::vector<uint32_t> mentioned_tensors(const wire::Record& op) {
  std::vector<wire::Record> refs;
  op.collect("tt.target.ttnn.TensorRef", refs);
  std::vector<uint32_t> ids;
  for (const auto& ref : refs) ids.push_back(static_cast<uint32_t>(ref.integer("global_id")));
  return ids;
}

// The rows and columns of chips. A size of 0 is a missing size and counts as 1.
Mesh decode_mesh(const wire::Record& record) {
  constexpr int64_t kMost = 1024;
  const Mesh mesh{std::max<int64_t>(record.integer("y"), 1), std::max<int64_t>(record.integer("x"), 1)};
  if (mesh.rows > kMost || mesh.columns > kMost) damaged("a mesh has more than 1024 rows or columns");
  return mesh;
}

Program decode_program(const wire::Record& record, bool* is_private) {
  Program program;
  program.name = record.text("name");
  *is_private = record.flag("private");
  for (const auto& ref : record.records("inputs")) program.inputs.push_back(decode_operand(ref));
  for (const auto& ref : record.records("outputs")) program.outputs.push_back(decode_operand(ref));
  for (const auto& op : record.records("operations")) {
    std::string_view name;
    const auto body = op.member("type", &name);
    if (!body) damaged("program " + std::string(program.name) + " has an operation of an unknown type");
    program.operations.push_back(
        {name, *body, op.text("loc_info"), op.text("debug_info"), mentioned_tensors(*body)});
  }
  for (const auto& library : record.records("dylibs"))
    program.libraries.emplace_back(library.integer("dylib_id"), library.bytes("raw_file"));
  if (auto mesh = record.record("mesh_shape")) program.mesh = decode_mesh(*mesh);
  return program;
}

ProgramInfo describe_program(const Program& program, bool is_private) {
  ProgramInfo info{std::string(program.name), is_private, {}, {}, {program.mesh.rows, program.mesh.columns}};
  for (const auto& operand : program.inputs) info.inputs.push_back(operand.spec);
  for (const auto& operand : program.outputs) info.outputs.push_back(operand.spec);
  return info;
}

}  // namespace

DataType decode_dtype(const wire::Record& record, std::string_view field) {
  const auto wanted = record.name_in(field);
  for (int i = 0; i <= static_cast<int>(DataType::Bool); ++i)
    if (wanted == name(static_cast<DataType>(i))) return static_cast<DataType>(i);
  record.unsupported(field);
}

Operand decode_operand(const wire::Record& ref) {
  const wire::Record desc = required(ref, "desc");
  const wire::Record memory = required(required(desc, "layout"), "memory_desc");
  Operand operand{static_cast<uint32_t>(ref.integer("global_id")), {}};
  TensorSpec& spec = operand.spec;
  spec.shape = desc.integers("shape");
  checked_volume(spec.shape);
  spec.dtype = decode_dtype(memory, "data_type");
  const wire::Record tile = required(memory, "tile_shape");
  spec.layout = tile.integer("y") == 32 && tile.integer("x") == 32 ? PageLayout::Tile : PageLayout::RowMajor;
  spec.buffer = BufferType::Dram;
  if (auto config = memory.record("memory_config")) decode_memory_config(*config, spec);
  if (!memory.choose("storage_type", on_device)) spec.buffer = BufferType::Host;
  return operand;
}

const Program& program_at(const Binary::Impl& binary, size_t index) {
  if (index >= binary.programs.size())
    throw Error(ErrorKind::BinaryFormat, "the binary has no program " + std::to_string(index));
  return binary.programs[index];
}

Binary Binary::load(std::span<const std::byte> bytes) {
  auto impl = std::make_shared<Impl>();
  const auto* data = reinterpret_cast<const uint8_t*>(bytes.data());
  impl->bytes.assign(data, data + bytes.size());
  const wire::Schema& schema = wire::identify(impl->bytes);
  const wire::Record root = wire::verify(impl->bytes, schema);
  impl->schema_hash = schema.hash;
  if (auto version = root.record("version"))
    for (const char* part : {"major", "minor", "patch"})
      impl->version.append(impl->version.empty() ? "" : ".").append(std::to_string(version->integer(part)));
  for (const auto& record : root.records("programs")) {
    bool is_private = false;
    impl->programs.push_back(decode_program(record, &is_private));
    impl->infos.push_back(describe_program(impl->programs.back(), is_private));
  }
  if (impl->programs.empty()) damaged("it has no program");
  return Binary(std::move(impl));
}

Binary Binary::load_file(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  if (!file) throw Error(ErrorKind::BinaryFormat, "cannot read " + path);
  const std::vector<char> bytes{std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
  return load(std::as_bytes(std::span(bytes)));
}

const std::vector<ProgramInfo>& Binary::programs() const { return impl_->infos; }
const std::string& Binary::schema_hash() const { return impl_->schema_hash; }
const std::string& Binary::version() const { return impl_->version; }

}  // namespace tt::runtime
