//===- LanguageModel.cpp - feeds tokens to a causal model ---------------===//
//
// Part of Tenon, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "runtime/LanguageModel.h"

#include "runtime/format/DType.h"

#include <algorithm>

namespace tenon::rt {
namespace {

bool startsWith(const std::string &text, const char *prefix) {
  return text.rfind(prefix, 0) == 0;
}

/// The output that continues cache input `past`: "past_key_values.0.key" goes
/// on as "present.0.key", "past_key_0" as "present_key_0".
bool continues(const std::string &past, const std::string &present) {
  if (!startsWith(present, "present"))
    return false;
  std::string tail = present.substr(std::string("present").size());
  for (const char *prefix : {"past_key_values", "past"})
    if (startsWith(past, prefix) &&
        past.substr(std::string(prefix).size()) == tail)
      return true;
  // "present_key_values.0.key" too.
  return startsWith(past, "past") && past.substr(4) == tail;
}

/// Numbers as elements of an integer, bool or f32 type; nothing for others.
bool convert(const std::vector<int64_t> &numbers, DType type,
             std::vector<char> &out) {
  auto fill = [&](auto element) {
    out.resize(numbers.size() * sizeof(element));
    for (size_t i = 0; i < numbers.size(); ++i) {
      element = static_cast<decltype(element)>(numbers[i]);
      std::memcpy(out.data() + i * sizeof(element), &element, sizeof(element));
    }
    return true;
  };
  switch (type) {
  case DType::I64:
    return fill(int64_t());
  case DType::I32:
    return fill(int32_t());
  case DType::Bool:
    return fill(uint8_t());
  case DType::F32:
    return fill(float());
  default:
    return false;
  }
}

} // namespace

Result<std::unique_ptr<LanguageModel>>
LanguageModel::create(const Model &model, unsigned threads, size_t rows) {
  auto session = Session::create(model, threads);
  if (!session.ok())
    return session.status();
  return create(std::shared_ptr<Session>(std::move(*session)), rows);
}

Result<std::unique_ptr<LanguageModel>>
LanguageModel::create(const Model &model, std::unique_ptr<Device> device,
                      size_t rows) {
  return create(
      std::shared_ptr<Session>(Session::create(model, std::move(device))),
      rows);
}

Result<std::unique_ptr<LanguageModel>>
LanguageModel::create(std::shared_ptr<Session> session, size_t rows) {
  if (rows == 0)
    return TN_ERROR("a language model needs at least one row");
  std::unique_ptr<LanguageModel> result(
      new LanguageModel(std::move(session), rows));
  for (auto step : {&LanguageModel::readInputs, &LanguageModel::readOutputs,
                    &LanguageModel::pairCaches})
    if (Status status = (result.get()->*step)(); !status.ok())
      return TN_ERROR("this model does not continue text: %s",
                      status.message().c_str());
  result->findLayout();
  result->runs->copyStates(false);
  result->reset();
  return result;
}

Result<LanguageModel::Role>
LanguageModel::roleOf(const std::string &name) const {
  if (name == "input_ids" || name == "tokens")
    return Role::Tokens;
  if (name == "attention_mask")
    return Role::Mask;
  if (name == "position_ids")
    return Role::Positions;
  if (startsWith(name, "past"))
    return Role::Past;
  return TN_ERROR("nothing is known to feed to input '%s'; known are "
                  "input_ids, attention_mask, position_ids and past...",
                  printable(name).c_str());
}

Status LanguageModel::readInputs() {
  bool takesTokens = false;
  for (const Port &port : plan.inputs()) {
    Result<Role> role = roleOf(plan.string(port.name));
    if (!role.ok())
      return role.status();
    std::vector<char> unused;
    bool isCache = *role == Role::Past;
    if (!isCache && (port.rank != 2 || !convert({}, port.dtype, unused)))
      return TN_ERROR("input '%s' is %s; expected integers of rank 2",
                      printable(std::string(plan.string(port.name))).c_str(),
                      plan.text(port).c_str());
    takesTokens |= *role == Role::Tokens;
    roles.push_back(*role);
  }
  inputData.resize(roles.size());
  return takesTokens ? Status() : TN_ERROR("it has no input 'input_ids'");
}

Status LanguageModel::readOutputs() {
  std::optional<size_t> found;
  for (size_t i = 0; i < plan.outputs().size(); ++i)
    if (std::string name = plan.string(plan.outputs()[i].name);
        name == "logits" || (!found && !startsWith(name, "present")))
      found = i;
  if (!found)
    return TN_ERROR("it has no output 'logits'");
  logitsOutput = *found;
  const Port &port = plan.outputs()[*found];
  if (port.rank != 3 || port.dtype != DType::F32)
    return TN_ERROR("output '%s' is %s; expected logits, f32[batch, n, "
                    "vocabulary]",
                    printable(std::string(plan.string(port.name))).c_str(),
                    plan.text(port).c_str());
  const Expr &last = plan.exprs()[plan.run(port.shape, 3)[2]];
  if (last.op != ExprOp::Constant)
    return TN_ERROR("the size of its vocabulary is not fixed");
  numLogits = last.value;
  return {};
}

Status LanguageModel::pairCaches() {
  for (size_t i = 0; i < roles.size(); ++i) {
    if (roles[i] != Role::Past || plan.stateOfInput(i))
      continue;
    const Port &past = plan.inputs()[i];
    std::string name = plan.string(past.name);
    std::optional<size_t> output;
    for (size_t o = 0; o < plan.outputs().size(); ++o)
      if (continues(name, plan.string(plan.outputs()[o].name)))
        output = o;
    if (!output)
      return TN_ERROR("no output continues input '%s'",
                      printable(name).c_str());
    Result<Cache> cache = pair(i, *output);
    if (!cache.ok())
      return cache.status();
    caches.push_back(std::move(*cache));
  }
  return {};
}

Result<LanguageModel::Cache> LanguageModel::pair(size_t input,
                                                 size_t output) const {
  const Port &past = plan.inputs()[input], &present = plan.outputs()[output];
  std::string name = printable(std::string(plan.string(past.name)));
  if (present.rank != past.rank || present.dtype != past.dtype)
    return TN_ERROR("input '%s' is %s, but the output that continues it is "
                    "%s",
                    name.c_str(), plan.text(past).c_str(),
                    plan.text(present).c_str());
  // The dimension that grows, or whose length we choose; all others are fixed,
  // but the first, which is the batch.
  auto before = plan.run(past.shape, past.rank),
       after = plan.run(present.shape, past.rank);
  std::optional<Cache> found;
  for (size_t d = 1; d < past.rank; ++d) {
    const Expr &size = plan.exprs()[before[d]];
    if (size.op == ExprOp::Constant)
      continue;
    // One that drops old tokens says how many it needs at least.
    int64_t least = 0;
    if (before[d] == after[d] && size.op == ExprOp::Symbol)
      least = plan.symbols()[size_t(size.value)].low;
    if (found || (before[d] == after[d] && least <= 1))
      return TN_ERROR("cannot tell which dimension of input '%s', %s, grows",
                      name.c_str(), plan.text(past).c_str());
    found = Cache{input, output, d, least, {}, {0, 0}};
  }
  if (!found)
    return TN_ERROR("no dimension of input '%s', %s, grows", name.c_str(),
                    plan.text(past).c_str());
  return std::move(*found);
}

bool LanguageModel::hasState() const { return !plan.states().empty(); }

void LanguageModel::findLayout() {
  if (caches.empty() && !hasState())
    return;
  layout = Layout::Slots;
  for (const Cache &cache : caches)
    if (cache.length || countsFromFront(cache.output, cache.axis))
      layout = Layout::Front;
  for (const State &state : plan.states())
    if (countsFromFront(state.output, state.axis))
      layout = Layout::Front;
}

/// GroupQueryAttention's caches are as long as they were, or as the mask is if
/// that is more; others are as long as the past and the new tokens.
bool LanguageModel::countsFromFront(size_t output, size_t axis) const {
  const Port &port = plan.outputs()[output];
  return plan.exprs()[plan.run(port.shape, port.rank)[axis]].op == ExprOp::Max;
}

int64_t LanguageModel::capacity() const {
  int64_t least = runs->capacity();
  for (const Cache &cache : caches)
    if (cache.length == 0)
      least = std::min(least, mostOf(cache.input, cache.axis));
  for (size_t i = 0; layout == Layout::Whole && i < roles.size(); ++i)
    if (roles[i] == Role::Tokens)
      least = std::min(least, mostOf(i, 1));
  return least;
}

int64_t LanguageModel::mostOf(size_t input, size_t dim) const {
  const Port &port = plan.inputs()[input];
  const Expr &size = plan.exprs()[plan.run(port.shape, port.rank)[dim]];
  if (size.op == ExprOp::Symbol)
    return plan.symbols()[size_t(size.value)].high;
  return size.op == ExprOp::Constant ? size.value : INT64_MAX;
}

void LanguageModel::reset() {
  fed = 0;
  if (!apart.empty())
    runs->keepStates(1);
  apart.clear();
  runs->selectStates(slot);
  runs->reset();
  lastLogits.assign(numRows * size_t(numLogits), 0);
  sequences.assign(numRows, {});
  isReal.assign(numRows, {});
}

Status LanguageModel::checkTokens(std::span<const int64_t> tokens,
                                  std::span<const uint8_t> real) const {
  if (tokens.empty() || tokens.size() % numRows != 0)
    return TN_ERROR("%zu tokens for %zu rows; expected at least one for each",
                    tokens.size(), numRows);
  if (!real.empty() && real.size() != tokens.size())
    return TN_ERROR("%zu flags for %zu tokens", real.size(), tokens.size());
  for (int64_t token : tokens)
    if (token < 0 || token >= numLogits)
      return TN_ERROR("token %lld is outside the vocabulary of %lld",
                      static_cast<long long>(token),
                      static_cast<long long>(numLogits));
  int64_t n = int64_t(tokens.size() / numRows);
  if (n > capacity() - fed)
    return TN_ERROR("the context is full: %lld tokens are in it and %lld were "
                    "to be added, but it holds %lld%s",
                    static_cast<long long>(fed), static_cast<long long>(n),
                    static_cast<long long>(capacity()),
                    hasState() ? "; compile with a larger --max-context"
                               : ", which is what the model can take");
  return {};
}

Status LanguageModel::feed(std::span<const int64_t> tokens,
                           std::span<const uint8_t> real) {
  if (Status status = checkTokens(tokens, real); !status.ok())
    return status;
  size_t n = tokens.size() / numRows;
  std::vector<size_t> lengths;
  for (size_t r = 0; r < numRows; ++r) {
    lengths.push_back(sequences[r].size());
    append(r, tokens.subspan(r * n, n),
           real.empty() ? real : real.subspan(r * n, n));
  }
  Status status = apart.empty() && mustPart(real) ? part() : Status();
  if (status.ok())
    status = apart.empty() ? compute(n, real) : computeApart();
  if (!status.ok()) {
    for (size_t r = 0; r < numRows; ++r) {
      sequences[r].resize(lengths[r]);
      isReal[r].resize(size_t(fed));
    }
    return status;
  }
  fed += int64_t(n);
  return {};
}

Status LanguageModel::compute(size_t n, std::span<const uint8_t> real) {
  runs->selectStates(slot);
  findLast(n, real);
  if (Status status = setInputs(n); !status.ok())
    return status;
  if (Status status = runs->run(); !status.ok())
    return status;
  if (Status status = keepLogits(); !status.ok())
    return status;
  parity ^= 1;
  return {};
}

bool LanguageModel::mustPart(std::span<const uint8_t> real) const {
  bool hasMask = false;
  for (size_t i = 0; i < roles.size(); ++i) {
    hasMask |= roles[i] == Role::Mask;
    if (roles[i] == Role::Tokens && mostOf(i, 0) < int64_t(numRows))
      return true;
  }
  bool padded = std::count(real.begin(), real.end(), 0) != 0;
  if (!padded || layout == Layout::Whole)
    return false;
  if (!hasMask)
    return true;
  if (layout == Layout::Front)
    return fed > 0 &&
           std::any_of(caches.begin(), caches.end(),
                       [](const Cache &cache) { return cache.length != 0; });
  // The first tokens have their padding in front.
  Padding needed = fed == 0 ? Padding::InFront : Padding::Anywhere;
  return plan.header().padding < needed;
}

/// Gives each row a model of its own on the same session, which has seen
/// nothing yet.
Status LanguageModel::part() {
  runs->keepStates(numRows);
  std::vector<std::unique_ptr<LanguageModel>> models;
  for (size_t r = 0; r < numRows; ++r) {
    auto model = create(runs, 1);
    if (!model.ok())
      return model.status();
    (*model)->slot = r;
    models.push_back(std::move(*model));
  }
  apart = std::move(models);
  for (Cache &cache : caches)
    for (unsigned memory : {0u, 1u}) {
      cache.memory[memory].reset();
      cache.bytes[memory] = 0;
    }
  return {};
}

/// Feeds each row what its own model has not seen. After a failure all of them
/// begin anew.
Status LanguageModel::computeApart() {
  for (size_t r = 0; r < numRows; ++r) {
    LanguageModel &row = *apart[r];
    std::span<const int64_t> all = sequences[r];
    std::span<const int64_t> tokens = all.subspan(size_t(row.fed));
    if (tokens.empty())
      continue;
    if (Status status = row.feed(tokens); !status.ok()) {
      (void)part();
      return status;
    }
    std::span<const float> made = row.logits();
    std::copy(made.begin(), made.end(),
              lastLogits.begin() + int64_t(r) * numLogits);
  }
  return {};
}

void LanguageModel::append(size_t row, std::span<const int64_t> tokens,
                           std::span<const uint8_t> real) {
  size_t padding = size_t(std::count(real.begin(), real.end(), 0));
  for (size_t i = 0; i < tokens.size(); ++i)
    if (real.empty() || real[i])
      sequences[row].push_back(tokens[i]);
  std::vector<uint8_t> &slots = isReal[row];
  if (fed == 0 || real.empty()) {
    slots.resize(slots.size() + padding, 0);
    slots.resize(size_t(fed) + tokens.size(), 1);
  } else {
    for (uint8_t flag : real)
      slots.push_back(flag != 0);
  }
}

size_t LanguageModel::columnsFor(size_t n) const {
  size_t longest = 1;
  for (const std::vector<int64_t> &row : sequences)
    longest = std::max(longest, row.size());
  return layout == Layout::Whole ? longest : n;
}

LanguageModel::RowInputs LanguageModel::inputsOf(size_t row, size_t n,
                                                 size_t columns) const {
  const std::vector<int64_t> &text = sequences[row];
  RowInputs out;
  if (layout == Layout::Slots) {
    const std::vector<uint8_t> &slots = isReal[row];
    out.mask.assign(slots.begin(), slots.end());
    auto first = slots.end() - ptrdiff_t(n);
    // Positions count real tokens only; padding has any.
    size_t next = size_t(std::count(slots.begin(), first, 1));
    for (auto slot = first; slot != slots.end(); ++slot) {
      out.positions.push_back(int64_t(next));
      out.tokens.push_back(*slot ? text[next] : 0);
      next += *slot;
    }
    return out;
  }
  // A row with fewer new tokens than others gets some before them once more,
  // which changes nothing.
  size_t taken = std::min(columns, text.size());
  size_t first = text.size() - taken;
  out.tokens.assign(text.begin() + ptrdiff_t(first), text.end());
  out.tokens.resize(columns, 0);
  for (size_t i = 0; i < columns; ++i)
    out.positions.push_back(int64_t(first + i));
  out.mask.assign(text.size(), 1);
  out.mask.resize(layout == Layout::Whole ? columns : size_t(fed) + n, 0);
  return out;
}

Status LanguageModel::setInputs(size_t n) {
  RowInputs all;
  for (size_t r = 0; r < numRows; ++r) {
    RowInputs row = inputsOf(r, n, columnsFor(n));
    all.tokens.insert(all.tokens.end(), row.tokens.begin(), row.tokens.end());
    all.positions.insert(all.positions.end(), row.positions.begin(),
                         row.positions.end());
    all.mask.insert(all.mask.end(), row.mask.begin(), row.mask.end());
  }
  for (size_t i = 0; i < roles.size(); ++i) {
    if (roles[i] == Role::Past)
      continue;
    const std::vector<int64_t> &numbers = roles[i] == Role::Positions
                                              ? all.positions
                                          : roles[i] == Role::Mask ? all.mask
                                                                   : all.tokens;
    if (Status status = setNumbers(i, numbers); !status.ok())
      return status;
  }
  return setCaches(n);
}

Status LanguageModel::setNumbers(size_t input,
                                 const std::vector<int64_t> &numbers) {
  DType type = plan.inputs()[input].dtype;
  convert(numbers, type, inputData[input]);
  int64_t shape[] = {int64_t(numRows), int64_t(numbers.size() / numRows)};
  return runs->setInput(input, type, shape, inputData[input].data());
}

Status LanguageModel::setCaches(size_t n) {
  for (Cache &cache : caches) {
    const Port &port = plan.inputs()[cache.input];
    std::vector<int64_t> shape = {int64_t(numRows)};
    for (size_t d = 1; d < port.rank; ++d)
      shape.push_back(
          d == cache.axis
              ? (cache.length ? cache.length : fed)
              : plan.exprs()[plan.run(port.shape, port.rank)[d]].value);
    // One that grows is empty at first, the other is there.
    if (cache.length && !cache.memory[parity])
      if (Status status = reserve(cache, parity, shape); !status.ok())
        return status;
    if (Status status = runs->setInput(cache.input, port.dtype, shape,
                                       cache.memory[parity].get());
        !status.ok())
      return status;
    if (!cache.length)
      shape[cache.axis] += int64_t(n);
    unsigned next = parity ^ 1;
    if (Status status = reserve(cache, next, shape); !status.ok())
      return status;
    if (Status status = runs->setOutput(cache.output, cache.memory[next].get(),
                                        cache.bytes[next]);
        !status.ok())
      return status;
  }
  return {};
}

Status LanguageModel::reserve(Cache &cache, unsigned memory,
                              std::span<const int64_t> shape) {
  uint64_t count = 0;
  if (!countElements(shape, count))
    return TN_ERROR("the caches are too large");
  DType type = plan.inputs()[cache.input].dtype;
  uint64_t bytes = (count * dtypeInfo(type).bits + 7) / 8;
  if (cache.bytes[memory] >= bytes && cache.memory[memory])
    return {};
  // Room to grow, so that not every token allocates.
  cache.bytes[memory] = cache.length ? bytes : bytes + bytes / 2;
  cache.memory[memory] = allocateAligned(cache.bytes[memory]);
  if (!cache.memory[memory])
    return TN_ERROR("not enough memory for %zu caches of %llu bytes",
                    caches.size(),
                    static_cast<unsigned long long>(cache.bytes[memory]));
  return {};
}

void LanguageModel::findLast(size_t n, std::span<const uint8_t> real) {
  fromEnd.assign(numRows, 1);
  size_t columns = columnsFor(n);
  for (size_t r = 0; r < numRows; ++r) {
    auto row = real.empty() ? real : real.subspan(r * n, n);
    auto last = std::find_if(row.rbegin(), row.rend(),
                             [](uint8_t flag) { return flag != 0; });
    if (!row.empty() && last == row.rend())
      fromEnd[r] = 0;
    else if (layout != Layout::Slots)
      fromEnd[r] = columns - std::min(columns, sequences[r].size()) + 1;
    else if (fed > 0 && !row.empty())
      fromEnd[r] = size_t(last - row.rbegin()) + 1;
  }
  // Other tokens' logits are computed by nobody, where the model lets choose.
  size_t most = *std::max_element(fromEnd.begin(), fromEnd.end());
  runs->limitChosen(int64_t(std::max<size_t>(most, 1)));
}

Status LanguageModel::keepLogits() {
  const OutputValue &output = runs->output(logitsOutput);
  // [rows, n, vocabulary], where n may be less for the last tokens alone.
  size_t most = *std::max_element(fromEnd.begin(), fromEnd.end());
  int64_t tokens = output.shape[1];
  if (output.shape[0] != int64_t(numRows) || tokens < int64_t(most))
    return TN_ERROR("the logits are for %lld rows of %lld tokens; the last %zu "
                    "of %zu rows are needed",
                    static_cast<long long>(output.shape[0]),
                    static_cast<long long>(tokens), most, numRows);
  for (size_t r = 0; r < numRows; ++r) {
    if (fromEnd[r] == 0)
      continue;
    const float *from =
        static_cast<const float *>(output.data) +
        ((int64_t(r) + 1) * tokens - int64_t(fromEnd[r])) * numLogits;
    std::copy(from, from + numLogits,
              lastLogits.begin() + int64_t(r) * numLogits);
  }
  return {};
}

std::span<const float> LanguageModel::logits(size_t row) const {
  return std::span<const float>(lastLogits)
      .subspan(row * size_t(numLogits), size_t(numLogits));
}

} // namespace tenon::rt
