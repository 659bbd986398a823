//===- Steps.cpp - one token's way through a language model --------------===//
//
// Part of Tenon, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "runtime/main/Steps.h"

#include "runtime/main/Profile.h"
#include "runtime/main/Report.h"

#include <algorithm>
#include <cstring>
#include <ctime>

namespace tenon::rt {
namespace {

enum class StepKind { Embedding, Norm, Attention, FeedForward, Head, Other };

/// A run of launches that does one thing.
struct Step {
  StepKind kind;
  size_t first, last; ///< launches, inclusive
  int layer = -1;
};

/// Finds the steps in the launches of a session's last run. A transformer is a
/// chain of norms: between two of them lies attention, if a launch computes
/// it, or the feed-forward part, if it multiplies matrices; behind the last
/// norm comes the output head, whose result has as many columns as there are
/// tokens.
class StepFinder {
public:
  StepFinder(const Session &session, int64_t vocabulary)
      : session(session), plan(session.model().plan()), vocabulary(vocabulary) {
  }

  std::vector<Step> find() {
    size_t count = plan.launches().size(), begin = 0;
    for (size_t i = 0; i < count; ++i) {
      if (!isMainNorm(i))
        continue;
      if (i > begin)
        addGroup(begin, i - 1);
      steps.push_back({StepKind::Norm, i, i});
      begin = i + 1;
    }
    if (begin < count)
      addGroup(begin, count - 1);
    int layer = -1;
    for (Step &step : steps) {
      if (step.kind == StepKind::Attention)
        ++layer;
      bool inLayer = step.kind == StepKind::Attention ||
                     step.kind == StepKind::FeedForward;
      step.layer = inLayer ? std::max(layer, 0) : -1;
    }
    // A norm belongs to the layer that it leads into.
    for (size_t i = steps.size(); i-- > 1;)
      if (steps[i - 1].kind == StepKind::Norm)
        steps[i - 1].layer = steps[i].layer;
    return std::move(steps);
  }

  std::vector<int64_t> shapeOf(uint32_t view) const {
    const View &described = plan.views()[view];
    std::vector<int64_t> shape;
    for (uint32_t id : plan.run(described.shape, described.rank))
      shape.push_back(session.values()[id]);
    return shape;
  }

  /// The shape of the launch's first operand, or of its result.
  std::vector<int64_t> shapeOf(size_t launch, bool result) const {
    const Launch &one = plan.launches()[launch];
    if (one.numViews == 0)
      return {};
    auto views = plan.run(one.views, one.numViews);
    return shapeOf(result ? views.back() : views.front());
  }

private:
  bool named(size_t launch, const char *part) const {
    return std::strstr(plan.string(plan.launches()[launch].kernel), part);
  }

  /// A norm over the model's own width, which the first has (norms of queries
  /// and keys are narrower).
  bool isMainNorm(size_t launch) {
    if (!named(launch, "_norm"))
      return false;
    auto shape = shapeOf(launch, true);
    if (width == 0 && !shape.empty())
      width = shape.back();
    return !shape.empty() && shape.back() == width;
  }

  void addGroup(size_t first, size_t last) {
    StepKind kind = steps.empty() ? StepKind::Embedding : StepKind::Other;
    for (size_t i = first; i <= last; ++i) {
      auto shape = shapeOf(i, true);
      bool multiplies =
          named(i, "matmul") || named(i, "gemm") || named(i, "gemv");
      if (named(i, "attention"))
        kind = StepKind::Attention;
      else if (multiplies && last + 1 == plan.launches().size() &&
               !shape.empty() && shape.back() == vocabulary)
        kind = StepKind::Head;
      else if (multiplies && kind != StepKind::Attention &&
               kind != StepKind::Head)
        kind = StepKind::FeedForward;
    }
    steps.push_back({kind, first, last});
  }

  const Session &session;
  const Plan &plan;
  int64_t vocabulary, width = 0;
  std::vector<Step> steps;
};

std::string shapeText(const std::vector<int64_t> &shape) {
  std::string out = "[";
  for (int64_t size : shape)
    out += (out.size() > 1 ? ", " : "") + std::to_string(size);
  return out + "]";
}

std::string count(double value) {
  return value < 1e4    ? format("%.0f", value)
         : value < 1e7  ? format("%.1f k", value / 1e3)
         : value < 1e10 ? format("%.1f M", value / 1e6)
                        : format("%.1f G", value / 1e9);
}

/// Writes the table of steps.
class StepsReport {
public:
  StepsReport(LanguageModel &model)
      : session(model.session()), plan(session.model().plan()),
        finder(session, model.vocabulary()), steps(finder.find()) {}

  std::string text() {
    std::string out = format("%-22s %-34s %9s %10s %10s\n", "", "shapes",
                             "FLOPs", "bytes", "time");
    LaunchCost later, all;
    int lastLayer = -1;
    for (const Step &step : steps)
      lastLayer = std::max(lastLayer, step.layer);
    for (const Step &step : steps) {
      LaunchCost cost = costOf(step);
      all.add(cost);
      if (step.layer >= 1) {
        later.add(cost);
        continue;
      }
      if (step.layer < 0 && later.launches != 0) {
        out += row(layersName(lastLayer), "the same", later);
        later = {};
      }
      out += row(nameOf(step), shapesOf(step), cost);
    }
    if (later.launches != 0)
      out += row(layersName(lastLayer), "the same", later);
    return out + row("all", "", all);
  }

private:
  static std::string layersName(int last) {
    return last == 1 ? "layer 1" : format("layers 1 to %d", last);
  }

  static std::string row(const std::string &name, const std::string &shapes,
                         const LaunchCost &cost) {
    return format("%-22s %-34s %9s %10s %7.3f ms\n", name.c_str(),
                  shapes.c_str(), count(double(cost.flops)).c_str(),
                  describeBytes(double(cost.bytes)).c_str(), cost.milliseconds);
  }

  static std::string nameOf(const Step &step) {
    std::string layer = step.layer < 0 ? "" : format("layer %d ", step.layer);
    switch (step.kind) {
    case StepKind::Embedding:
      return "embedding";
    case StepKind::Norm:
      return layer.empty() ? "residual and norm" : layer + "norm";
    case StepKind::Attention:
      return layer + "attention";
    case StepKind::FeedForward:
      return layer + "feed-forward";
    case StepKind::Head:
      return "output head";
    case StepKind::Other:
      break;
    }
    return "other";
  }

  std::string shapesOf(const Step &step) const {
    return shapeText(finder.shapeOf(step.first, false)) + " -> " +
           shapeText(finder.shapeOf(
               step.kind == StepKind::Embedding ? step.first : step.last,
               true));
  }

  LaunchCost costOf(const Step &step) const {
    LaunchCost cost;
    for (size_t i = step.first; i <= step.last; ++i)
      cost.add(rt::costOf(session, i));
    return cost;
  }

  const Session &session;
  const Plan &plan;
  StepFinder finder;
  std::vector<Step> steps;
};

double now() {
  timespec time;
  clock_gettime(CLOCK_MONOTONIC, &time);
  return double(time.tv_sec) * 1e3 + double(time.tv_nsec) / 1e6;
}

std::string quoted(TextCodec &codec, uint32_t id) {
  auto text = codec.decode({&id, 1}, false);
  return jsonString(text.ok() ? *text : codec.tokenText(id));
}

} // namespace

Result<std::string> stepsText(TextGenerator &generator, TextCodec &codec,
                              std::span<const uint32_t> prompt) {
  LanguageModel &model = generator.languageModel();
  // A first run touches the memory and makes the sizes known; its times would
  // not be the model's.
  for (int round = 0; round < 2; ++round) {
    generator.reset();
    if (Status status = generator.feed(prompt.first(prompt.size() - 1));
        !status.ok())
      return status;
    model.session().enableProfile();
    if (Status status = generator.feed(prompt.last(1)); !status.ok())
      return status;
  }
  std::string out = format("token %lld of the context: %s is id %u\n\n",
                           static_cast<long long>(generator.position()),
                           quoted(codec, prompt.back()).c_str(), prompt.back());
  out += StepsReport(model).text();
  double begin = now();
  auto best = Sampler::mostProbable(model.logits(), 5);
  out += format(
      "%-22s %-34s %9s %10s %7.3f ms\n\n", "softmax, top 5",
      format("[%zu] -> [%zu]", model.logits().size(), best.size()).c_str(),
      count(double(model.logits().size()) * 3).c_str(),
      describeBytes(double(model.logits().size()) * 4).c_str(), now() - begin);
  out += "next token:\n";
  for (const Candidate &candidate : best)
    out +=
        format("  %5.1f %%  id %-6u %s\n", 100 * double(candidate.probability),
               candidate.token, quoted(codec, candidate.token).c_str());
  return out;
}

} // namespace tenon::rt
