//===- Generate.cpp - text generation on the command line ----------------===//
//
// Part of Tenon, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "runtime/main/Generate.h"

#include "runtime/Cpu.h"
#include "runtime/TextGenerator.h"
#include "runtime/main/Bandwidth.h"
#include "runtime/main/Devices.h"
#include "runtime/main/Report.h"
#include "runtime/main/Steps.h"

#include <algorithm>
#include <cstdio>
#include <ctime>
#include <unistd.h>

namespace tenon::rt {
namespace {

/// Model, tokenizer and sampler of one conversation.
struct Talk {
  std::unique_ptr<LanguageModel> model;
  std::unique_ptr<TextCodec> codec;
  std::optional<TextGenerator> generator;
  SamplingOptions sampling;
};

uint64_t seedOfNow() {
  timespec time;
  clock_gettime(CLOCK_REALTIME, &time);
  return (uint64_t(time.tv_sec) * 1000000000 + uint64_t(time.tv_nsec)) %
         1000000007;
}

/// What the flags say, else what the model's generation config says.
SamplingOptions samplingOf(const Options &options,
                           const GenerationDefaults &defaults) {
  SamplingOptions sampling;
  sampling.temperature = options.temperature.value_or(defaults.temperature);
  sampling.topK = options.topK.value_or(defaults.topK);
  sampling.topP = options.topP.value_or(defaults.topP);
  sampling.minP = options.minP.value_or(defaults.minP);
  sampling.repetitionPenalty =
      options.repetitionPenalty.value_or(defaults.repetitionPenalty);
  sampling.seed = options.seed ? *options.seed : seedOfNow();
  return sampling;
}

Result<Talk> startTalk(const Payload &payload, const Model &model,
                       const Options &options) {
  Talk talk;
  if (payload.text().empty() || !tenon_make_text_codec)
    return TN_ERROR("this artifact has no tokenizer: compile the model with "
                    "--tokenizer=tokenizer.json");
  auto codec = tenon_make_text_codec(payload.text());
  if (!codec.ok())
    return codec.status();
  talk.codec = std::move(*codec);
  auto device = makeDevice(model, options);
  if (!device.ok())
    return device.status();
  auto lm = LanguageModel::create(model, std::move(*device));
  if (!lm.ok())
    return lm.status();
  talk.model = std::move(*lm);
  talk.sampling = samplingOf(options, talk.codec->defaults());
  auto generator =
      TextGenerator::create(*talk.model, *talk.codec, talk.sampling);
  if (!generator.ok())
    return generator.status();
  talk.generator = std::move(*generator);
  return talk;
}

void emitToStdout(void *, std::string_view text) {
  std::fwrite(text.data(), 1, text.size(), stdout);
  std::fflush(stdout);
}

void appendTo(void *context, std::string_view text) {
  static_cast<std::string *>(context)->append(text);
}

const char *describe(StopReason reason) {
  switch (reason) {
  case StopReason::Length:
    return "--max-tokens";
  case StopReason::Token:
    return "the model's end of text";
  case StopReason::String:
    return "--stop";
  case StopReason::Context:
    return "the full context";
  }
  return "";
}

double perSecond(size_t count, double seconds) {
  return seconds > 0 ? double(count) / seconds : 0;
}

/// The figures of a generation, for people.
std::string statsText(const Talk &talk, StopReason reason, double bandwidth) {
  const GenerationStats &stats = talk.generator->stats();
  double bytes = stats.decodeSeconds > 0
                     ? double(stats.decodeBytes) / stats.decodeSeconds
                     : 0;
  std::string out = format("prefill: %zu tokens in %.1f ms, %.0f tokens/s\n",
                           stats.promptTokens, stats.prefillSeconds * 1e3,
                           perSecond(stats.promptTokens, stats.prefillSeconds));
  if (stats.decodeSteps != 0)
    out +=
        format("decode:  %zu tokens in %.1f ms, %.0f tokens/s, %.1f GB/s",
               stats.decodeSteps, stats.decodeSeconds * 1e3,
               perSecond(stats.decodeSteps, stats.decodeSeconds), bytes / 1e9);
  if (stats.decodeSteps != 0 && bandwidth > 0)
    out += format(", %.0f %% of the %.1f GB/s that reading the weights reaches",
                  100 * bytes / bandwidth, bandwidth / 1e9);
  if (stats.decodeSteps != 0)
    out += "\n";
  out += format("ended:   by %s\n", describe(reason));
  if (talk.sampling.temperature > 0)
    out += format("seed:    %llu\n",
                  static_cast<unsigned long long>(talk.sampling.seed));
  return out;
}

std::string idList(const std::vector<uint32_t> &ids) {
  std::string out = "[";
  for (uint32_t id : ids)
    out += (out.size() > 1 ? ", " : "") + std::to_string(id);
  return out + "]";
}

std::string statsJson(const Talk &talk, StopReason reason, double bandwidth,
                      const std::string &text,
                      const std::vector<uint32_t> &prompt,
                      const std::vector<uint32_t> &ids) {
  const GenerationStats &stats = talk.generator->stats();
  return format("{\"text\": %s, \"prompt_ids\": %s, \"ids\": %s, \"ended_by\": "
                "\"%s\", ",
                jsonString(text).c_str(), idList(prompt).c_str(),
                idList(ids).c_str(), describe(reason)) +
         format("\"prefill_ms\": %.3f, \"decode_ms\": %.3f, \"decode_steps\": "
                "%zu, \"sample_ms\": %.3f, \"decode_bytes\": %lld, "
                "\"read_gbps\": %.3f, \"seed\": %llu}\n",
                stats.prefillSeconds * 1e3, stats.decodeSeconds * 1e3,
                stats.decodeSteps, stats.sampleSeconds * 1e3,
                static_cast<long long>(stats.decodeBytes), bandwidth / 1e9,
                static_cast<unsigned long long>(talk.sampling.seed));
}

/// The prompt's ids; a template's tokens at its end would end the text.
Status encodePrompt(TextCodec &codec, std::string_view prompt,
                    std::vector<uint32_t> &ids) {
  if (Status status = codec.encode(prompt, true, ids); !status.ok())
    return status;
  auto stops = codec.stopIds();
  while (ids.size() > 1 && codec.isSpecial(ids.back()) &&
         std::find(stops.begin(), stops.end(), ids.back()) != stops.end())
    ids.pop_back();
  return ids.empty() ? TN_ERROR("the prompt is empty") : Status();
}

TextGenerator::Limits limitsOf(const Options &options) {
  return {size_t(options.maxTokens), options.stops};
}

/// A line of standard input without its end; false at the end of all.
bool readLine(std::string &line) {
  line.clear();
  for (int c; (c = std::fgetc(stdin)) != EOF;) {
    if (c == '\n')
      return true;
    line += char(c);
  }
  return !line.empty();
}

/// The ids that continue a chat with what the person wrote.
Status encodeTurn(TextCodec &codec, const ChatTexts &texts, bool first,
                  const std::string &line, std::vector<uint32_t> &ids) {
  std::string turn = (first ? texts.begin : texts.assistantEnd) +
                     texts.userBegin + line + texts.userEnd +
                     texts.assistantBegin;
  if (texts.empty())
    turn = line + "\n";
  return codec.encode(turn, first && texts.begin.empty(), ids);
}

} // namespace

Status generateText(const Payload &payload, const Model &model,
                    const Options &options) {
  auto talk = startTalk(payload, model, options);
  if (!talk.ok())
    return talk.status();
  std::vector<uint32_t> prompt, ids;
  if (Status status = encodePrompt(*talk->codec, *options.prompt, prompt);
      !status.ok())
    return status;
  std::string text;
  auto reason = talk->generator->generate(
      prompt, limitsOf(options), options.json ? appendTo : emitToStdout, &text,
      ids);
  if (!reason.ok())
    return reason.status();
  if (!options.json) {
    std::fputs("\n", stdout);
    std::fflush(stdout);
  }
  // Of the host's memory, which a GPU does not read.
  double bandwidth =
      talk->generator->stats().decodeSteps && model.deviceCode().empty()
          ? readBandwidth(payload.weights(), talk->model->session().threads())
          : 0;
  if (options.json)
    std::fputs(statsJson(*talk, *reason, bandwidth, text, prompt, ids).c_str(),
               stdout);
  else
    std::fputs(statsText(*talk, *reason, bandwidth).c_str(), stderr);
  return {};
}

Status chat(const Payload &payload, const Model &model,
            const Options &options) {
  auto talk = startTalk(payload, model, options);
  if (!talk.ok())
    return talk.status();
  TextGenerator &generator = *talk->generator;
  ChatTexts texts = talk->codec->chat();
  TextGenerator::Limits limits = limitsOf(options);
  // The turn's end, where the model writes it as text.
  if (!texts.assistantEnd.empty())
    limits.stopStrings.push_back(texts.assistantEnd);
  bool toTerminal = isatty(0) && isatty(2);
  std::string line;
  std::vector<uint32_t> pending; ///< generated, but not yet fed
  bool first = true;
  while (true) {
    if (toTerminal)
      std::fputs("> ", stderr);
    if (!readLine(line))
      return {};
    std::vector<uint32_t> prompt = pending;
    Status status = encodeTurn(*talk->codec, texts, first, line, prompt);
    if (!status.ok())
      return status;
    if (int64_t(prompt.size()) >
            generator.contextLength() - generator.position() &&
        !first) {
      std::fprintf(stderr,
                   "the context of %lld tokens is full: what was said before "
                   "is forgotten\n",
                   static_cast<long long>(generator.contextLength()));
      generator.reset();
      prompt.clear();
      status = encodeTurn(*talk->codec, texts, true, line, prompt);
      if (!status.ok())
        return status;
    }
    first = false;
    std::vector<uint32_t> ids;
    auto reason =
        generator.generate(prompt, limits, emitToStdout, nullptr, ids);
    if (!reason.ok())
      return reason.status();
    std::fputs("\n", stdout);
    std::fflush(stdout);
    pending.clear();
    if (*reason != StopReason::Token && !ids.empty())
      pending.push_back(ids.back());
  }
}

Status showSteps(const Payload &payload, const Model &model,
                 const Options &options) {
  auto talk = startTalk(payload, model, options);
  if (!talk.ok())
    return talk.status();
  std::vector<uint32_t> prompt;
  if (Status status = encodePrompt(*talk->codec, *options.prompt, prompt);
      !status.ok())
    return status;
  auto text = stepsText(*talk->generator, *talk->codec, prompt);
  if (!text.ok())
    return text.status();
  std::fputs(text->c_str(), stdout);
  return {};
}

} // namespace tenon::rt
