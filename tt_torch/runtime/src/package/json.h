// Values of a JSON document that somebody else wrote. Each function throws a Package error for a value of
// another kind.
#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "tt/runtime/error.h"

namespace tt::runtime::package {

using Json = nlohmann::json;

[[noreturn]] inline void refuse(const std::string& why) { throw Error(ErrorKind::Package, why); }

[[noreturn]] inline void malformed(const std::string& what) { refuse("has a malformed manifest: " + what); }

// Throws an error that begins with `otherwise` for text that is no JSON. Also throws for text that is nested
// more than 200 levels deep, because readers of the result are recursive. The library's own messages have the
// whole text up to the mistake, with bytes that may be no UTF-8.
inline Json parse(std::string_view text, const std::string& otherwise) {
  constexpr int kDeepest = 200;
  const auto shallow = [](int depth, Json::parse_event_t, Json&) {
    return depth <= kDeepest ? true
                             : throw Error(ErrorKind::Package, "has a manifest that is nested too deep");
  };
  try {
    return Json::parse(text, shallow);
  } catch (const Json::parse_error& error) {
    refuse(otherwise + "the byte " + std::to_string(error.byte) + " of its JSON is wrong");
  } catch (const Json::out_of_range&) {
    refuse(otherwise + "its JSON has a number that is too large");
  }
}

inline const Json& part(const Json& object, const char* key) {
  if (!object.is_object() || !object.contains(key)) malformed(std::string(key) + " is missing");
  return object[key];
}

inline const Json& object(const Json& json, const char* key) {
  const Json& found = part(json, key);
  return found.is_object() ? found : (malformed(std::string(key) + " is no object"), found);
}

inline const Json& list(const Json& json, const char* key) {
  const Json& found = part(json, key);
  return found.is_array() ? found : (malformed(std::string(key) + " is no list"), found);
}

inline std::string shown(const Json& json) { return json.dump().substr(0, 100); }

inline std::string text(const Json& json) {
  if (!json.is_string()) malformed(shown(json) + " is no text");
  return json.get<std::string>();
}

inline bool boolean(const Json& json) {
  if (!json.is_boolean()) malformed(shown(json) + " is neither true nor false");
  return json.get<bool>();
}

// A number from 0 to `last`: a size, an offset or a position.
inline int64_t natural(const Json& json, int64_t last = int64_t{1} << 36) {
  if (!json.is_number_unsigned() || json.get<uint64_t>() > static_cast<uint64_t>(last))
    malformed(shown(json) + " is no number from 0 to " + std::to_string(last));
  return json.get<int64_t>();
}

inline std::vector<int64_t> naturals(const Json& json, int64_t last = int64_t{1} << 36) {
  if (!json.is_array()) malformed(shown(json) + " is no list");
  std::vector<int64_t> found;
  for (const Json& number : json) found.push_back(natural(number, last));
  return found;
}

}  // namespace tt::runtime::package
