// Verifies a whole file by a Schema, with the primitives of flatbuffers::Verifier. Alignment counts from byte
// 0 of the file, including the size prefix, as in the files that flatbuffers writes. This uses only functions
// of flatbuffers 1.12, the version of Ubuntu 22.04.
#include <flatbuffers/flatbuffers.h>

#include <map>
#include <tuple>
#include <unordered_map>

#include "tt/runtime/error.h"
#include "wire/reader.h"

namespace tt::runtime::wire {

namespace fb = flatbuffers;

namespace {

constexpr size_t kPrefix = sizeof(fb::uoffset_t);
// Ids of TTNNBinary's version, schema_hash and ttmlir_git_hash in every known schema.
constexpr uint16_t kVersionField = 0, kHashField = 1, kCommitField = 2;
constexpr int kMaxDepth = 48;
constexpr size_t kShownText = 60;  // bytes of an op's text that an error shows
constexpr size_t kTableSize = 16;  // bytes that a table counts for, without the objects that it refers to
constexpr fb::uoffset_t kMaxTables = 4'000'000;
// The limit for the bytes that a file describes, relative to its size. An object that several others refer to
// counts for each of them. So the size of the file limits the work and the memory of a walk through its
// tables. Files that compilers write describe less than twice their size.
constexpr size_t kMostExpansion = 64, kAllowance = 1 << 20;

[[noreturn]] void damaged(const std::string& what) {
  throw Error(ErrorKind::BinaryFormat, "not a valid TTNN binary: " + what);
}

class Checker {
 public:
  Checker(std::span<const uint8_t> file, const Schema* schema)
      : file_(file),
        verifier_(file.data(), file.size(), kMaxDepth, kMaxTables),
        schema_(schema),
        most_(kMostExpansion * file.size() + kAllowance),
        seen_(schema ? schema->types.size() : 0) {}

  const uint8_t* root() {
    if (file_.size() < kPrefix + 8) damaged("the file is too short");
    const auto length = fb::ReadScalar<fb::uoffset_t>(file_.data());
    if (length != file_.size() - kPrefix)
      damaged("its length prefix says " + std::to_string(length) + " bytes, the file has " +
              std::to_string(file_.size() - kPrefix));
    return target(file_.data() + kPrefix, "root");
  }

  // The position of field `id` in a table whose start was checked; null if the field is absent.
  const uint8_t* field(const uint8_t* table, uint16_t id, const char* name, size_t size, size_t align) {
    const auto slot = static_cast<fb::voffset_t>(4 + 2 * id);
    const auto offset = reinterpret_cast<const fb::Table*>(table)->GetOptionalFieldOffset(slot);
    if (!offset) return nullptr;
    const auto start = static_cast<size_t>(table + offset - file_.data());
    if (start % align || !verifier_.Verify(start, size)) damaged(std::string("bad field ") + name);
    return table + offset;
  }

  void table_start(const uint8_t* table, const char* name) {
    if (++tables_ > kMaxTables) damaged("too many tables");
    if (!verifier_.VerifyTableStart(table)) damaged(std::string("bad table ") + name);
    const uint8_t* vtable = table - fb::ReadScalar<fb::soffset_t>(table);
    if (fb::ReadScalar<fb::voffset_t>(vtable) < 4) damaged(std::string("bad table ") + name);
    verifier_.EndTable();
  }

  const uint8_t* target(const uint8_t* at, const char* name) {
    const auto offset = verifier_.VerifyOffset(static_cast<size_t>(at - file_.data()));
    if (!offset) damaged(std::string("bad offset in ") + name);
    return at + offset;
  }

  void string(const uint8_t* at, const char* name) {
    if (!verifier_.VerifyString(reinterpret_cast<const fb::String*>(at)))
      damaged(std::string("bad text ") + name);
    spend(fb::ReadScalar<fb::uoffset_t>(at));
  }

  void type(const uint8_t* at, const Type& type, int depth);

 private:
  void slots(const uint8_t* table, const Type& type);
  std::string op_text(const uint8_t* table, const Type& owner);
  void value(const uint8_t* table, const Type& type, const Field& field, int depth);
  void vector(const uint8_t* at, const Type& owner, const Field& field, int depth);
  void element(const uint8_t* at, const Type& owner, const Field& field, int depth);
  void number(const uint8_t* at, Base base, const Type& owner, const Field& field);
  void structure(const uint8_t* at, const Type& type);
  void spend(size_t bytes) {
    if ((spent_ += bytes) > most_)
      damaged("its objects refer to the same objects so often that they describe more than " +
              std::to_string(kMostExpansion) + " times its size");
  }

  std::span<const uint8_t> file_;
  fb::Verifier verifier_;
  const Schema* schema_;
  size_t tables_ = 0;
  size_t most_,
      spent_ = 0;  // bytes that the file describes; a shared object counts once for each of its parents
  // An object that several others refer to is checked once: a table once per type, a vector once per element
  // type. The value is the number of bytes that the object describes.
  std::vector<std::unordered_map<const uint8_t*, size_t>> seen_;
  std::map<std::tuple<const uint8_t*, Base, int16_t>, size_t> walked_;
  size_t walked_bytes_ = 0;  // bytes of all walked vectors; the vectors of a valid file do not overlap
};

void Checker::type(const uint8_t* at, const Type& type, int depth) {
  if (depth > kMaxDepth) damaged("nested too deeply");
  auto& seen = seen_[&type - schema_->types.data()];
  if (const auto known = seen.find(at); known != seen.end()) return spend(known->second);
  const size_t before = spent_;
  table_start(at, type.name);
  slots(at, type);
  spend(kTableSize);
  for (const Field& field : type.all()) value(at, type, field, depth);
  seen[at] = spent_ - before;
}

// A field that the schema does not have could change what the table means, so it is an error.
void Checker::slots(const uint8_t* table, const Type& type) {
  const uint8_t* vtable = table - fb::ReadScalar<fb::soffset_t>(table);
  const int found = fb::ReadScalar<fb::voffset_t>(vtable) / 2 - 2;
  if (found > type.slots)
    damaged(std::string(short_name(type.name)) + " has " + std::to_string(found) + " slots, its schema has " +
            std::to_string(type.slots));
}

// The text of an operation, for an error; "" if it has none.
std::string Checker::op_text(const uint8_t* table, const Type& owner) {
  for (const Field& f : owner.all()) {
    if (std::string_view(f.name) != "debug_info") continue;
    const uint8_t* at = field(table, f.position, f.name, 4, 4);
    if (!at) break;
    const uint8_t* text = target(at, f.name);
    string(text, f.name);
    return "; the text of the op: " + reinterpret_cast<const fb::String*>(text)->str().substr(0, kShownText);
  }
  return "";
}

void Checker::value(const uint8_t* table, const Type& owner, const Field& f, int depth) {
  const bool inline_struct = f.base == Base::Object && schema_->types[f.type].is_struct;
  const size_t size = inline_struct ? schema_->types[f.type].size : size_of(f.base);
  const size_t align = inline_struct ? schema_->types[f.type].align : size;
  const uint8_t* at = field(table, f.position, f.name, size, align);
  if (!at) return;
  if (inline_struct) return structure(at, schema_->types[f.type]);
  if (f.base < Base::String) return number(at, f.base, owner, f);
  const uint8_t* pointed = target(at, f.name);
  if (f.base == Base::String) return string(pointed, f.name);
  if (f.base == Base::Vector) return vector(pointed, owner, f, depth);
  if (f.base == Base::Object) return type(pointed, schema_->types[f.type], depth + 1);
  // A union: its tag is the field before it. Without a known tag, the value could not be read.
  const uint8_t* tag = field(table, static_cast<uint16_t>(f.position - 1), f.name, 1, 1);
  const Member* member = schema_->unions[f.type].find(tag ? *tag : 0);
  if (!member)
    damaged(std::string(short_name(owner.name)) + "." + f.name + " is number " +
            std::to_string(tag ? *tag : 0) + " of " + std::string(short_name(schema_->unions[f.type].name)) +
            ", which its schema does not have" + op_text(table, owner));
  type(pointed, schema_->types[member->type], depth + 1);
}

// The schema must have a name for the number of an enum.
void Checker::number(const uint8_t* at, Base base, const Type& owner, const Field& f) {
  if (!f.is_enum()) return;
  const Enum& type = schema_->enums[f.type];
  const int64_t value = read_integer(base, at);
  if (!type.is_bit_set && !type.name_of(value))
    damaged(std::string(short_name(owner.name)) + "." + f.name + " is " + std::to_string(value) + ", and " +
            std::string(short_name(type.name)) + " of its schema has no such value");
}

void Checker::structure(const uint8_t* at, const Type& type) {
  for (const Field& f : type.all()) {
    const uint8_t* part = at + f.position;
    f.base == Base::Object ? structure(part, schema_->types[f.type]) : number(part, f.base, type, f);
  }
}

void Checker::vector(const uint8_t* at, const Type& owner, const Field& f, int depth) {
  const bool structs = f.element == Base::Object && schema_->types[f.type].is_struct;
  const size_t size = structs ? schema_->types[f.type].size : size_of(f.element);
  const size_t align = structs ? schema_->types[f.type].align : size;
  const auto start = static_cast<size_t>(at - file_.data());
  if (!verifier_.VerifyVectorOrString(at, size)) damaged(std::string("bad vector ") + f.name);
  // The elements follow the length, which takes 4 bytes, and are aligned to their own size. The C++ builder
  // of flatbuffers, which tt-mlir uses, does not align a vector without elements.
  const auto count = fb::ReadScalar<fb::uoffset_t>(at);
  if (count && (start + 4) % align) damaged(std::string("bad vector ") + f.name);
  if (f.element < Base::String && !f.is_enum()) return spend(count * size);
  const std::tuple key{at, f.element, f.type};
  if (const auto known = walked_.find(key); known != walked_.end()) return spend(known->second);
  if ((walked_bytes_ += count * size) > file_.size())
    damaged(std::string("overlapping vectors at ") + f.name);
  const size_t before = spent_;
  spend(count * size);
  for (size_t i = 0; i < count; ++i) element(at + 4 + size * i, owner, f, depth);
  walked_[key] = spent_ - before;
}

void Checker::element(const uint8_t* at, const Type& owner, const Field& f, int depth) {
  // Vectors of unions occur only in ops with user-written kernels. The runtime does not run these ops, so the
  // unions are never read.
  if (f.element == Base::Union) return;
  if (f.element < Base::String) return number(at, f.element, owner, f);
  if (f.element == Base::Object && schema_->types[f.type].is_struct)
    return structure(at, schema_->types[f.type]);
  const uint8_t* pointed = target(at, f.name);
  if (f.element == Base::String) string(pointed, f.name);
  if (f.element == Base::Object) type(pointed, schema_->types[f.type], depth + 1);
}

// The version of tt-mlir that wrote a file with an unknown schema. It is read from the fields of the root
// table that can be read without a schema.
std::string writer(Checker& checker, const uint8_t* root) {
  std::string text = "tt-mlir";
  if (const uint8_t* at = checker.field(root, kVersionField, "version", 8, 4))
    text += " " + std::to_string(fb::ReadScalar<uint16_t>(at)) + "." +
            std::to_string(fb::ReadScalar<uint16_t>(at + 2)) + "." +
            std::to_string(fb::ReadScalar<uint32_t>(at + 4));
  if (const uint8_t* at = checker.field(root, kCommitField, "ttmlir_git_hash", 4, 4)) {
    const uint8_t* commit = checker.target(at, "ttmlir_git_hash");
    checker.string(commit, "ttmlir_git_hash");
    text += " (commit " + reinterpret_cast<const fb::String*>(commit)->str().substr(0, 40) + ")";
  }
  return text;
}

}  // namespace

const Schema& identify(std::span<const uint8_t> file) {
  Checker checker(file, nullptr);
  const uint8_t* root = checker.root();
  const std::string identifier(reinterpret_cast<const char*>(file.data()) + 8, 4);
  if (identifier != embedded_schemas().front().identifier) damaged("its identifier is not TTNN");
  checker.table_start(root, "root");
  const uint8_t* at = checker.field(root, kHashField, "schema_hash", 4, 4);
  if (!at) damaged("it has no schema hash");
  const uint8_t* text = checker.target(at, "schema_hash");
  checker.string(text, "schema_hash");
  const std::string hash = reinterpret_cast<const fb::String*>(text)->str();
  std::string known;
  for (const Schema* schema : known_schemas()) {
    if (hash == schema->hash) return *schema;
    known += std::string("\n  ") + schema->hash;
  }
  throw Error(ErrorKind::Schema, "the binary was written for schema " + hash.substr(0, 64) + " by " +
                                     writer(checker, root) + "; the runtime has tables for:" + known +
                                     "\n`python -m tt_torch.wire.make_schema` adds one");
}

Record verify(std::span<const uint8_t> file, const Schema& schema) {
  Checker checker(file, &schema);
  const uint8_t* root = checker.root();
  checker.type(root, schema.types[schema.root], 0);
  return Record(&schema, &schema.types[schema.root], root);
}

}  // namespace tt::runtime::wire
