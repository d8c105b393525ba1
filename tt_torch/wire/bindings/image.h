// The image of an object of a file before it is written: its bytes, by which equal objects are recognised.
#pragma once

#include <flatbuffers/flatbuffers.h>

#include <string>
#include <string_view>
#include <vector>

#include "plan.h"

namespace tt::wire {

using flatbuffers::FlatBufferBuilder;
using flatbuffers::uoffset_t;

class Image {
 public:
  // Two objects with equal content can be one object of the file.
  const std::string& content() const { return content_; }

 protected:
  // Objects of different kinds (t: table, s: string, v: vector) or of different types never have equal
  // contents.
  Image(char kind, const Value& of);

  uint8_t* extend(size_t size);  // appends zeros; returns their position
  const uint8_t* at(size_t position) const {
    return reinterpret_cast<const uint8_t*>(content_.data()) + position;
  }
  size_t end() const { return content_.size(); }

  std::string content_;
  size_t head_;  // the start of the bytes that are written; before it are kind and type
};

class StringImage : public Image {
 public:
  explicit StringImage(std::string_view text);
  uoffset_t write(FlatBufferBuilder& builder) const;
};

class TableImage : public Image {
 public:
  explicit TableImage(int type);

  // The place for the bytes of a field that is stored in the table itself.
  uint8_t* add(uint16_t slot, size_t size, size_t align);
  void add_offset(uint16_t slot, uoffset_t offset);
  uoffset_t write(FlatBufferBuilder& builder);

 private:
  struct Place {
    uint16_t slot;
    size_t at, size, align;
    bool is_offset;
  };
  std::vector<Place> places_;
};

class VectorImage : public Image {
 public:
  explicit VectorImage(const Value& element);

  uint8_t* add();  // the place for the bytes of the next number or struct
  void add_all(std::string_view bytes);
  void add_offset(uoffset_t offset);
  uoffset_t write(FlatBufferBuilder& builder) const;

 private:
  Value element_;
};

}  // namespace tt::wire
