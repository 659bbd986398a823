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
  return create(std::move(*session), rows);
}

Result<std::unique_ptr<LanguageModel>>
LanguageModel::create(const Model &model, std::unique_ptr<Device> device,
                      size_t rows) {
  return create(Session::create(model, std::move(device)), rows);
}

Result<std::unique_ptr<LanguageModel>>
LanguageModel::create(std::unique_ptr<Session> session, size_t rows) {
  if (rows == 0)
    return TN_ERROR("a language model needs at least one row");
  std::unique_ptr<LanguageModel> result(
      new LanguageModel(std::move(session), rows));
  for (auto step : {&LanguageModel::readInputs, &LanguageModel::readOutputs,
                    &LanguageModel::pairCaches})
    if (Status status = (result.get()->*step)(); !status.ok())
      return TN_ERROR("this model does not continue text: %s",
                      status.message().c_str());
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
    const Port &present = plan.outputs()[*output];
    if (present.rank != past.rank || present.dtype != past.dtype)
      return TN_ERROR("input '%s' is %s, but the output that continues it is "
                      "%s",
                      printable(name).c_str(), plan.text(past).c_str(),
                      plan.text(present).c_str());
    // The dimension that grows; all others are fixed, but the first, which is
    // the batch.
    auto before = plan.run(past.shape, past.rank),
         after = plan.run(present.shape, past.rank);
    std::optional<size_t> axis;
    for (size_t d = 1; d < past.rank; ++d) {
      if (plan.exprs()[before[d]].op == ExprOp::Constant)
        continue;
      if (axis || before[d] == after[d])
        return TN_ERROR("cannot tell which dimension of input '%s', %s, grows",
                        printable(name).c_str(), plan.text(past).c_str());
      axis = d;
    }
    if (!axis)
      return TN_ERROR("no dimension of input '%s', %s, grows",
                      printable(name).c_str(), plan.text(past).c_str());
    caches.push_back({i, *output, *axis, {}, {}});
  }
  return {};
}

bool LanguageModel::hasState() const { return !plan.states().empty(); }

int64_t LanguageModel::capacity() const {
  int64_t least = runs->capacity();
  for (const Cache &cache : caches)
    least = std::min(least, mostOf(cache.input, cache.axis));
  for (size_t i = 0; recomputes() && i < roles.size(); ++i)
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
  bool padded = std::count(real.begin(), real.end(), 0) != 0;
  if (padded &&
      std::find(roles.begin(), roles.end(), Role::Mask) == roles.end())
    return TN_ERROR("rows of different lengths need a model with an input "
                    "'attention_mask', which tells padding from tokens");
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
  for (size_t r = 0; r < numRows; ++r) {
    auto row = tokens.subspan(r * n, n);
    sequences[r].insert(sequences[r].end(), row.begin(), row.end());
    if (real.empty())
      isReal[r].resize(sequences[r].size(), 1);
    else
      isReal[r].insert(isReal[r].end(), real.begin() + r * n,
                       real.begin() + (r + 1) * n);
  }
  findLast(n, real);
  Status status = setInputs(n);
  if (status.ok())
    status = runs->run();
  if (status.ok())
    status = keepLogits();
  if (!status.ok()) {
    for (size_t r = 0; r < numRows; ++r) {
      sequences[r].resize(size_t(fed));
      isReal[r].resize(size_t(fed));
    }
    return status;
  }
  fed += int64_t(n);
  parity ^= 1;
  return {};
}

std::vector<int64_t> LanguageModel::positionsOf(size_t first, size_t n) const {
  // Counted over real tokens only; padding has any.
  std::vector<int64_t> out;
  for (const std::vector<uint8_t> &row : isReal) {
    int64_t next = std::count(row.begin(), row.begin() + first, 1);
    for (size_t i = first; i < first + n; ++i) {
      out.push_back(next);
      next += row[i];
    }
  }
  return out;
}

Status LanguageModel::setInputs(size_t n) {
  size_t all = size_t(fed) + n, first = recomputes() ? 0 : size_t(fed);
  for (size_t i = 0; i < roles.size(); ++i) {
    std::vector<int64_t> numbers;
    size_t columns = all - first;
    if (roles[i] == Role::Past)
      continue;
    if (roles[i] == Role::Positions) {
      numbers = positionsOf(first, columns);
    } else if (roles[i] == Role::Tokens) {
      for (const std::vector<int64_t> &row : sequences)
        numbers.insert(numbers.end(), row.begin() + first, row.end());
    } else {
      columns = all;
      for (const std::vector<uint8_t> &row : isReal)
        numbers.insert(numbers.end(), row.begin(), row.end());
    }
    if (Status status = setNumbers(i, numbers, columns); !status.ok())
      return status;
  }
  return setCaches(n);
}

Status LanguageModel::setNumbers(size_t input,
                                 const std::vector<int64_t> &numbers,
                                 size_t columns) {
  DType type = plan.inputs()[input].dtype;
  convert(numbers, type, inputData[input]);
  int64_t shape[] = {int64_t(numRows), int64_t(columns)};
  return runs->setInput(input, type, shape, inputData[input].data());
}

Status LanguageModel::setCaches(size_t n) {
  for (Cache &cache : caches) {
    const Port &port = plan.inputs()[cache.input];
    std::vector<int64_t> shape = {int64_t(numRows)};
    for (size_t d = 1; d < port.rank; ++d)
      shape.push_back(
          d == cache.axis
              ? fed
              : plan.exprs()[plan.run(port.shape, port.rank)[d]].value);
    if (Status status = runs->setInput(cache.input, port.dtype, shape,
                                       cache.memory[parity].get());
        !status.ok())
      return status;
    shape[cache.axis] += int64_t(n);
    uint64_t count = 0;
    if (!countElements(shape, count))
      return TN_ERROR("the caches are too large");
    uint64_t bytes = (count * dtypeInfo(port.dtype).bits + 7) / 8;
    unsigned next = parity ^ 1;
    if (cache.bytes[next] < bytes) {
      // Room to grow, so that not every token allocates.
      cache.bytes[next] = bytes + bytes / 2;
      cache.memory[next] = allocateAligned(cache.bytes[next]);
      if (!cache.memory[next])
        return TN_ERROR("not enough memory for %zu caches of %llu bytes",
                        caches.size(),
                        static_cast<unsigned long long>(cache.bytes[next]));
    }
    if (Status status = runs->setOutput(cache.output, cache.memory[next].get(),
                                        cache.bytes[next]);
        !status.ok())
      return status;
  }
  return {};
}

void LanguageModel::findLast(size_t n, std::span<const uint8_t> real) {
  fromEnd.assign(numRows, 1);
  for (size_t r = 0; r < numRows && !real.empty(); ++r) {
    auto row = real.subspan(r * n, n);
    auto last = std::find_if(row.rbegin(), row.rend(),
                             [](uint8_t flag) { return flag != 0; });
    fromEnd[r] = last == row.rend() ? 0 : size_t(last - row.rbegin()) + 1;
  }
  // Other tokens' logits are computed by nobody, where the model lets choose.
  runs->limitChosen(int64_t(*std::max_element(fromEnd.begin(), fromEnd.end())));
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
