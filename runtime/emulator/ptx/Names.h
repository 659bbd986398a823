//===- Names.h - the nested scopes of a PTX function ----------------------===//
//
// Part of Tenon, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef TENON_RUNTIME_EMULATOR_PTX_NAMES_H
#define TENON_RUNTIME_EMULATOR_PTX_NAMES_H

#include <cstdint>
#include <optional>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

namespace tenon::emu::ptx {

/// What the names of one function stand for. Registers and variables are
/// declared before they are used and vanish with their scope; labels may be
/// used before they are placed, so their scopes are kept.
class Names {
public:
  struct Meaning {
    enum Kind : uint8_t { Register, Variable } kind;
    uint32_t index;
    uint32_t count; // of a range %r<count>; 0: one register
  };
  struct LabelUse {
    std::string_view name;
    uint32_t scope;
    uint32_t instruction;
    unsigned line;
  };

  Names() { open(); }

  void open() {
    parents.push_back(stack.empty() ? 0 : stack.back().id);
    stack.push_back({static_cast<uint32_t>(parents.size() - 1), {}});
  }
  void close() { stack.pop_back(); }
  size_t depth() const { return stack.size(); }

  /// False if the scope has the name already.
  bool declare(std::string_view name, Meaning meaning) {
    return stack.back().names.try_emplace(name, meaning).second;
  }

  /// The register or variable of a name, a register of a range included.
  std::optional<Meaning> find(std::string_view name) const;

  bool placeLabel(std::string_view name, uint32_t instruction) {
    return labels.try_emplace({stack.back().id, name}, instruction).second;
  }
  bool placeList(std::string_view name, std::vector<std::string_view> targets) {
    return lists.try_emplace({stack.back().id, name}, std::move(targets))
        .second;
  }
  uint32_t scope() const { return stack.back().id; }

  /// The instruction that a label, seen from `scope`, stands before.
  const uint32_t *label(std::string_view name, uint32_t scope) const {
    return lookup(labels, name, scope);
  }
  const std::vector<std::string_view> *list(std::string_view name,
                                            uint32_t scope) const {
    return lookup(lists, name, scope);
  }

private:
  using Key = std::pair<uint32_t, std::string_view>;
  struct Hash {
    size_t operator()(const Key &key) const {
      return std::hash<std::string_view>()(key.second) * 31 + key.first;
    }
  };
  struct Scope {
    uint32_t id;
    std::unordered_map<std::string_view, Meaning> names;
  };

  template <typename Map>
  const typename Map::mapped_type *lookup(const Map &map, std::string_view name,
                                          uint32_t scope) const {
    for (;; scope = parents[scope]) {
      auto found = map.find({scope, name});
      if (found != map.end())
        return &found->second;
      if (scope == 0)
        return nullptr;
    }
  }

  std::vector<Scope> stack;
  std::vector<uint32_t> parents;
  std::unordered_map<Key, uint32_t, Hash> labels;
  std::unordered_map<Key, std::vector<std::string_view>, Hash> lists;
};

inline std::optional<Names::Meaning> Names::find(std::string_view name) const {
  size_t stem = name.size();
  while (stem > 0 && name[stem - 1] >= '0' && name[stem - 1] <= '9')
    --stem;
  std::string_view digits = name.substr(stem);
  bool ranged = !digits.empty() && digits.size() < 8 &&
                (digits.size() == 1 || digits[0] != '0');
  uint32_t number = 0;
  for (char c : digits.substr(0, ranged ? digits.size() : 0))
    number = number * 10 + (c - '0');
  for (size_t i = stack.size(); i-- > 0;) {
    auto exact = stack[i].names.find(name);
    if (exact != stack[i].names.end() && exact->second.count == 0)
      return exact->second;
    if (!ranged)
      continue;
    auto range = stack[i].names.find(name.substr(0, stem));
    if (range != stack[i].names.end() && number < range->second.count)
      return Meaning{range->second.kind, range->second.index + number, 0};
  }
  return std::nullopt;
}

} // namespace tenon::emu::ptx

#endif // TENON_RUNTIME_EMULATOR_PTX_NAMES_H
