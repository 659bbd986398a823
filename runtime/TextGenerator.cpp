//===- TextGenerator.cpp - continues a text, token by token --------------===//
//
// Part of Tenon, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "runtime/TextGenerator.h"

#include <algorithm>
#include <ctime>

namespace tenon::rt {
namespace {

double seconds() {
  timespec time;
  clock_gettime(CLOCK_MONOTONIC, &time);
  return double(time.tv_sec) + double(time.tv_nsec) * 1e-9;
}

/// Passes text on, but for what may be the beginning of a stop string.
class StopFilter {
public:
  StopFilter(const std::vector<std::string> &stops, TextGenerator::Emit emit,
             void *context)
      : stops(stops), emit(emit), context(context) {}

  /// True when a stop string is complete; what precedes it was passed on.
  bool add(std::string_view text) {
    pending.append(text);
    size_t found = std::string::npos;
    for (const std::string &stop : stops)
      found = std::min(found, pending.find(stop));
    if (found != std::string::npos) {
      give(found);
      pending.clear();
      return true;
    }
    size_t held = 0;
    for (const std::string &stop : stops)
      held = std::max(held, overlap(stop));
    give(pending.size() - held);
    return false;
  }

  void finish() { give(pending.size()); }

private:
  /// How much of the end of `pending` is the beginning of `stop`.
  size_t overlap(const std::string &stop) const {
    size_t length = std::min(stop.size() - 1, pending.size());
    while (length > 0 &&
           !std::string_view(stop).starts_with(
               std::string_view(pending).substr(pending.size() - length)))
      --length;
    return length;
  }

  void give(size_t count) {
    if (count != 0)
      emit(context, std::string_view(pending).substr(0, count));
    pending.erase(0, count);
  }

  const std::vector<std::string> &stops;
  TextGenerator::Emit emit;
  void *context;
  std::string pending;
};

} // namespace

TextGenerator::TextGenerator(LanguageModel &model, TextCodec &codec,
                             const SamplingOptions &sampling)
    : model(&model), codec(&codec), sampler(sampling), limit(model.capacity()) {
  if (uint32_t trained = codec.defaults().contextLength)
    limit = std::min<int64_t>(limit, trained);
}

Result<TextGenerator> TextGenerator::create(LanguageModel &model,
                                            TextCodec &codec,
                                            const SamplingOptions &sampling) {
  if (Status status = checkSampling(sampling); !status.ok())
    return status;
  if (int64_t(codec.idCount()) > model.vocabulary())
    return TN_ERROR("the tokenizer's ids go up to %u, but the model's "
                    "vocabulary has %lld: it belongs to another model",
                    codec.idCount() - 1,
                    static_cast<long long>(model.vocabulary()));
  if (model.rows() != 1)
    return TN_ERROR("%zu rows, expected one to generate text", model.rows());
  return TextGenerator(model, codec, sampling);
}

bool TextGenerator::isStop(uint32_t id) const {
  return std::ranges::find(codec->stopIds(), id) != codec->stopIds().end();
}

Status TextGenerator::feed(std::span<const uint32_t> tokens) {
  if (tokens.empty())
    return {};
  if (int64_t(tokens.size()) > limit - position())
    return TN_ERROR("the prompt has %zu tokens and %lld are in the context, "
                    "which holds %lld",
                    tokens.size(), static_cast<long long>(position()),
                    static_cast<long long>(limit));
  std::vector<int64_t> ids(tokens.begin(), tokens.end());
  if (Status status = model->feed(ids); !status.ok())
    return status;
  history.insert(history.end(), tokens.begin(), tokens.end());
  return {};
}

void TextGenerator::reset() {
  model->reset();
  history.clear();
}

Result<StopReason> TextGenerator::generate(std::span<const uint32_t> prompt,
                                           const Limits &limits, Emit emit,
                                           void *context,
                                           std::vector<uint32_t> &ids) {
  numbers = {};
  numbers.promptTokens = prompt.size();
  if (prompt.empty() && history.empty())
    return TN_ERROR("the prompt is empty");
  double begin = seconds();
  if (Status status = feed(prompt); !status.ok())
    return status;
  numbers.prefillSeconds = seconds() - begin;
  StreamDecoder decoder(*codec);
  StopFilter filter(limits.stopStrings, emit, context);
  StopReason reason = StopReason::Length;
  while (numbers.newTokens < limits.maxTokens) {
    begin = seconds();
    auto token = sampler.choose(model->logits(), history);
    numbers.sampleSeconds += seconds() - begin;
    if (!token.ok())
      return token.status();
    if (isStop(*token)) {
      reason = StopReason::Token;
      break;
    }
    ids.push_back(*token);
    ++numbers.newTokens;
    auto text = decoder.add(*token);
    if (!text.ok())
      return text.status();
    if (filter.add(*text)) {
      reason = StopReason::String;
      break;
    }
    if (numbers.newTokens == limits.maxTokens)
      break;
    if (position() >= limit) {
      reason = StopReason::Context;
      break;
    }
    begin = seconds();
    if (Status status = feed({&*token, 1}); !status.ok())
      return status;
    numbers.decodeSeconds += seconds() - begin;
    numbers.decodeBytes += model->session().bytes();
    ++numbers.decodeSteps;
  }
  if (reason != StopReason::String) {
    auto rest = decoder.finish();
    if (!rest.ok())
      return rest.status();
    if (!filter.add(*rest))
      filter.finish();
  }
  return reason;
}

} // namespace tenon::rt
