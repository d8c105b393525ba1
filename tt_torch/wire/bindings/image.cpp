#include "image.h"

#include <algorithm>
#include <utility>

namespace tt::wire {

namespace {

void push_offset(FlatBufferBuilder& builder, const uint8_t* bytes) {
  builder.PushElement(builder.ReferTo(flatbuffers::ReadScalar<uoffset_t>(bytes)));
}

}  // namespace

Image::Image(char kind, const Value& of) : content_{kind, of.kind} {
  flatbuffers::WriteScalar(extend(sizeof of.ref), of.ref);
  head_ = end();
}

uint8_t* Image::extend(size_t size) {
  content_.resize(content_.size() + size);
  return reinterpret_cast<uint8_t*>(content_.data()) + content_.size() - size;
}

StringImage::StringImage(std::string_view text) : Image('s', {}) { content_ += text; }

uoffset_t StringImage::write(FlatBufferBuilder& builder) const {
  return builder.CreateString(content_.data() + head_, end() - head_).o;
}

TableImage::TableImage(int type) : Image('t', {.kind = 't', .ref = type}) {}

uint8_t* TableImage::add(uint16_t slot, size_t size, size_t align) {
  flatbuffers::WriteScalar(extend(sizeof slot), slot);
  places_.push_back({slot, end(), size, align, false});
  return extend(size);
}

void TableImage::add_offset(uint16_t slot, uoffset_t offset) {
  flatbuffers::WriteScalar(add(slot, sizeof offset, sizeof offset), offset);
  places_.back().is_offset = true;
}

uoffset_t TableImage::write(FlatBufferBuilder& builder) {
  // The builder works from the end of a table to its front. It needs the least padding if wide fields are in
  // front.
  std::sort(places_.begin(), places_.end(), [](const Place& a, const Place& b) {
    return std::pair(a.align, b.slot) < std::pair(b.align, a.slot);
  });
  const uoffset_t start = builder.StartTable();
  for (const Place& place : places_) {
    if (place.is_offset) {
      push_offset(builder, at(place.at));
    } else {
      builder.Align(place.align);
      builder.PushBytes(at(place.at), place.size);
    }
    builder.TrackField(flatbuffers::FieldIndexToOffset(place.slot), builder.GetSize());
  }
  return builder.EndTable(start);
}

VectorImage::VectorImage(const Value& element) : Image('v', element), element_(element) {}

uint8_t* VectorImage::add() { return extend(element_.size); }

void VectorImage::add_all(std::string_view bytes) { content_ += bytes; }

void VectorImage::add_offset(uoffset_t offset) { flatbuffers::WriteScalar(add(), offset); }

uoffset_t VectorImage::write(FlatBufferBuilder& builder) const {
  const size_t bytes = end() - head_;
  // Aligns the position of the first element even in an empty vector, which ForceVectorAlignment does not do.
  builder.Align(element_.align);
  builder.ForceVectorAlignment(bytes, 1, sizeof(uoffset_t));
  if (element_.is_offset())
    for (size_t i = end(); i > head_; i -= element_.size) push_offset(builder, at(i - element_.size));
  else
    builder.PushBytes(at(head_), bytes);
  return builder.PushElement(static_cast<uoffset_t>(bytes / element_.size));
}

}  // namespace tt::wire
