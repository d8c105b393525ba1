#include "wire/reader.h"

#include <flatbuffers/flatbuffers.h>

#include <stdexcept>

#include "tt/runtime/error.h"

namespace tt::runtime::wire {

namespace fb = flatbuffers;

namespace {

constexpr size_t kShown = 64;  // characters of a text that an error shows

template <typename Result>
Result read(Base base, const uint8_t* at) {
  switch (base) {
    case Base::Bool:
    case Base::U8:
      return static_cast<Result>(*at);
    case Base::I8:
      return static_cast<Result>(fb::ReadScalar<int8_t>(at));
    case Base::I16:
      return static_cast<Result>(fb::ReadScalar<int16_t>(at));
    case Base::U16:
      return static_cast<Result>(fb::ReadScalar<uint16_t>(at));
    case Base::I32:
      return static_cast<Result>(fb::ReadScalar<int32_t>(at));
    case Base::U32:
      return static_cast<Result>(fb::ReadScalar<uint32_t>(at));
    case Base::I64:
      return static_cast<Result>(fb::ReadScalar<int64_t>(at));
    case Base::U64:
      return static_cast<Result>(fb::ReadScalar<uint64_t>(at));
    case Base::F32:
      return static_cast<Result>(fb::ReadScalar<float>(at));
    case Base::F64:
      return static_cast<Result>(fb::ReadScalar<double>(at));
    default:
      return Result{};
  }
}

const uint8_t* pointee(const uint8_t* at) { return at + fb::ReadScalar<fb::uoffset_t>(at); }

template <typename Result>
std::vector<Result> read_all(Base element, const uint8_t* vector) {
  std::vector<Result> result(fb::ReadScalar<fb::uoffset_t>(vector));
  for (size_t i = 0; i < result.size(); ++i) {
    result[i] = read<Result>(element, vector + sizeof(fb::uoffset_t) + i * size_of(element));
  }
  return result;
}

}  // namespace

int64_t read_integer(Base base, const uint8_t* at) { return read<int64_t>(base, at); }

const Field* Record::find(std::string_view name) const {
  for (const Field& field : type_->all())
    if (name == field.name) return &field;
  return nullptr;
}

const uint8_t* Record::locate(const Field* field) const {
  if (!field) return nullptr;
  if (type_->is_struct) return at_ + field->position;
  const auto slot = static_cast<fb::voffset_t>(4 + 2 * field->position);
  const auto offset = reinterpret_cast<const fb::Table*>(at_)->GetOptionalFieldOffset(slot);
  return offset ? at_ + offset : nullptr;
}

// The position that an offset field of type `base` points to; null if the field is absent or of another type.
const uint8_t* Record::follow(std::string_view name, Base base, const Field** found) const {
  *found = find(name);
  const uint8_t* at = *found && (*found)->base == base ? locate(*found) : nullptr;
  return at ? pointee(at) : nullptr;
}

bool Record::has(std::string_view name) const { return locate(find(name)) != nullptr; }

int64_t Record::integer(std::string_view name) const {
  const Field* field = find(name);
  if (field && field->is_enum()) throw std::logic_error("an enum read as a number: " + std::string(name));
  const uint8_t* at = locate(field);
  if (!at) return field ? static_cast<int64_t>(field->value) : 0;
  return read<int64_t>(field->base, at);
}

double Record::real(std::string_view name) const {
  const Field* field = find(name);
  const uint8_t* at = locate(field);
  if (!at) return field ? field->value : 0.0;
  return read<double>(field->base, at);
}

std::optional<int64_t> Record::maybe_integer(std::string_view name) const {
  return has(name) ? std::optional(integer(name)) : std::nullopt;
}

std::optional<double> Record::maybe_real(std::string_view name) const {
  return has(name) ? std::optional(real(name)) : std::nullopt;
}

std::optional<std::string_view> Record::name_in(std::string_view name) const {
  const Field* field;
  if (follow(name, Base::String, &field)) return text(name);
  if (!field || !field->is_enum()) return std::nullopt;
  const uint8_t* at = locate(field);
  if (!at && field->optional) return std::nullopt;
  const int64_t value = at ? read_integer(field->base, at) : static_cast<int64_t>(field->value);
  return schema_->enums[field->type].name_of(value);
}

void Record::unsupported(std::string_view field) const {
  const auto name = name_in(field);
  const std::string what =
      name ? " is " + std::string(name->substr(0, kShown)) + ", which the runtime does not support"
           : " is missing";
  throw Error(ErrorKind::UnsupportedBinary,
              std::string(short_name(type_->name)).append(".").append(field) + what);
}

std::string_view Record::text(std::string_view name) const {
  const Field* field;
  const uint8_t* at = follow(name, Base::String, &field);
  if (!at) return {};
  const auto* text = reinterpret_cast<const fb::String*>(at);
  return {text->c_str(), text->size()};
}

std::optional<Record> Record::record(std::string_view name) const {
  const Field* field = find(name);
  const uint8_t* at = field && field->base == Base::Object ? locate(field) : nullptr;
  if (!at) return std::nullopt;
  const Type* type = &schema_->types[field->type];
  return Record(schema_, type, type->is_struct ? at : pointee(at));
}

std::optional<Record> Record::member(std::string_view name, std::string_view* member_name) const {
  const Field* field;
  const uint8_t* at = follow(name, Base::Union, &field);
  if (!at) return std::nullopt;
  const auto tag = static_cast<uint8_t>(integer(std::string(name) + "_type"));
  const Member* member = schema_->unions[field->type].find(tag);
  if (!member) return std::nullopt;
  if (member_name) *member_name = member->name;
  return Record(schema_, &schema_->types[member->type], at);
}

std::vector<Record> Record::records(std::string_view name) const {
  const Field* field;
  const uint8_t* at = follow(name, Base::Vector, &field);
  std::vector<Record> result;
  if (!at || field->element != Base::Object) return result;
  const Type* type = &schema_->types[field->type];
  const auto count = fb::ReadScalar<fb::uoffset_t>(at);
  const uint8_t* first = at + sizeof(fb::uoffset_t);
  result.reserve(count);
  for (size_t i = 0; i < count; ++i) {
    const uint8_t* element = type->is_struct ? first + i * type->size : pointee(first + i * 4);
    result.emplace_back(schema_, type, element);
  }
  return result;
}

std::vector<int64_t> Record::integers(std::string_view name) const {
  const Field* field;
  const uint8_t* at = follow(name, Base::Vector, &field);
  return at ? read_all<int64_t>(field->element, at) : std::vector<int64_t>();
}

std::vector<double> Record::reals(std::string_view name) const {
  const Field* field;
  const uint8_t* at = follow(name, Base::Vector, &field);
  return at ? read_all<double>(field->element, at) : std::vector<double>();
}

std::span<const uint8_t> Record::bytes(std::string_view name) const {
  const Field* field;
  const uint8_t* at = follow(name, Base::Vector, &field);
  if (!at || size_of(field->element) != 1) return {};
  return {at + sizeof(fb::uoffset_t), fb::ReadScalar<fb::uoffset_t>(at)};
}

void Record::collect(std::string_view type, std::vector<Record>& found) const {
  const auto visit = [&](const Record& below) {
    if (type == below.type_name())
      found.push_back(below);
    else
      below.collect(type, found);
  };
  for (const Field& field : type_->all()) {
    if (field.base == Base::Object)
      if (auto below = record(field.name)) visit(*below);
    if (field.base == Base::Union)
      if (auto below = member(field.name)) visit(*below);
    if (field.base == Base::Vector && field.element == Base::Object)
      for (const Record& below : records(field.name)) visit(below);
  }
}

}  // namespace tt::runtime::wire
