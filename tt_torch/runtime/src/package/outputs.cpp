#include "package/outputs.h"

#include <algorithm>
#include <set>

namespace tt::runtime::package {

namespace {

const std::set<std::string> kMaps = {"dict", "OrderedDict"}, kSequences = {"list", "tuple"};

class Namer {
 public:
  Namer(const Manifest& manifest, size_t results) : manifest_(manifest), results_(results) {}

  void visit(const Json& node, const std::string& name) {
    if (!node.is_object()) malformed("a part of the result is no object");
    if (node.contains("parts"))
      visit_parts(node, name);
    else if (node.size() != 1)
      malformed("a part of the result has another form");
    else
      visit_leaf(node.begin().key(), node.begin().value(), name);
  }

  std::vector<Output> found;

 private:
  void visit_parts(const Json& node, const std::string& name) {
    const Json &parts = list(node, "parts"), &keys = list(node, "keys");
    const bool is_class = node.contains("class");
    const std::string kind = is_class ? text(node["class"]) : text(part(node, "container"));
    const bool is_sequence = !is_class && kSequences.contains(kind);
    if (!is_class && !is_sequence && !kMaps.contains(kind)) malformed("the result has an unknown container");
    if (keys.size() != (is_sequence ? 0 : parts.size())) malformed("the result has another number of keys");
    for (size_t i = 0; i < parts.size(); ++i)
      visit(parts[i], name + (is_sequence ? "[" + std::to_string(i) + "]" : suffix(keys[i], is_class)));
  }

  // The place of a part, as Python writes it: `.logits`, `['ids']` or `[0]`.
  static std::string suffix(const Json& key, bool is_class) {
    if (key.is_boolean()) return key.get<bool>() ? "[True]" : "[False]";
    if (!key.is_string()) return "[" + (key.is_null() ? "None" : key.dump()) + "]";
    const std::string word = text(key);
    if (!is_class) return "[" + quoted(word) + "]";
    return std::ranges::all_of(word, [](char c) { return c >= '0' && c <= '9'; }) ? "[" + word + "]"
                                                                                  : "." + word;
  }

  // A text as Python's `repr` writes it: in double quotes if it has single ones only.
  static std::string quoted(const std::string& word) {
    const char quote = word.find('\'') != word.npos && word.find('"') == word.npos ? '"' : '\'';
    std::string written(1, quote);
    for (const char c : word) {
      if (c == quote || c == '\\') written += '\\';
      if (c == '\n')
        written += "\\n";
      else if (c == '\r')
        written += "\\r";
      else if (c == '\t')
        written += "\\t";
      else
        written += c;
    }
    return written + quote;
  }

  void visit_leaf(const std::string& kind, const Json& value, const std::string& name) {
    if (kind == "value") return;  // a number, a text or None, which is the same at each call
    if (kind == "result") {
      const auto last = static_cast<int64_t>(results_) - 1;
      if (last < 0) malformed("the result has an unknown part");
      found.push_back({name, manifest_.written.size() + static_cast<size_t>(natural(value, last))});
      return;
    }
    const GraphInput of{kind == "weight", text(value)};
    const auto& known = of.is_weight ? manifest_.weights : manifest_.arguments;
    if ((!of.is_weight && kind != "argument") || !known.contains(of.name))
      malformed("the result has an unknown part");
    found.push_back({name, of});
  }

  const Manifest& manifest_;
  size_t results_;
};

}  // namespace

std::vector<Output> outputs_of(const Json& tree, const Manifest& manifest, size_t results) {
  Namer namer(manifest, results);
  namer.visit(tree, "result");
  std::ranges::sort(namer.found, {}, &Output::name);
  for (size_t i = 1; i < namer.found.size(); ++i)
    if (namer.found[i - 1].name == namer.found[i].name) malformed("two results are " + namer.found[i].name);
  return std::move(namer.found);
}

}  // namespace tt::runtime::package
