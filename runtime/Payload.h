//===- Payload.h - the plan and weights inside an artifact's file -------===//
//
// Part of Tenon, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef TENON_RUNTIME_PAYLOAD_H
#define TENON_RUNTIME_PAYLOAD_H

#include "runtime/Model.h"
#include "runtime/support/File.h"

#include <optional>

namespace tenon::rt {

/// How the weights get into memory: mapped from the file and shared between
/// processes, or copied into large pages of this process's own.
enum class WeightPages { Map, Huge };

/// Names of the ELF sections of an artifact. They lie outside the loaded
/// segments, so that their size has no limits and starting costs nothing.
inline constexpr char planSection[] = ".tenon.plan";
inline constexpr char weightsSection[] = ".tenon.weights";
inline constexpr char goldenSection[] = ".tenon.golden";
inline constexpr char textSection[] = ".tenon.text";
inline constexpr char deviceCodeSection[] = ".tenon.cuda";

/// An artifact's file, opened: an ELF executable or shared library with the
/// sections above. `.tenon.cuda` is there when it is for GPUs
/// (format/device_code.h). `.tenon.golden` may be missing; it is an .npz with
/// an array "input/NAME" for each input, "output/NAME" for each output and "tolerance",
/// two f64 (relative, absolute). `.tenon.text` may be missing; it is a tokenizer
/// (format/tokenizer.h).
class Payload {
public:
  /// Messages, these and later ones, do not name the file.
  static Result<Payload> open(const std::string &path,
                              WeightPages pages = WeightPages::Map);
  /// The artifact that the code or data at `address` was loaded from. Messages
  /// begin with the name of its file.
  static Result<Payload> openContaining(const void *address,
                                        WeightPages pages = WeightPages::Map);

  const Plan &plan() const { return *thePlan; }
  Bytes weights() const { return weightMap.bytes(); }
  Bytes golden() const { return goldenMap.bytes(); }
  Bytes text() const { return textMap.bytes(); }
  /// Empty: the artifact is for CPUs.
  Bytes deviceCode() const { return codeMap.bytes(); }
  uint64_t fileBytes() const { return size; }

  /// Reads all weights and compares their checksum.
  Status verifyWeights(unsigned threads) const;

private:
  Payload() = default;

  uint64_t size = 0;
  MappedFile planMap, weightMap, goldenMap, textMap, codeMap;
  std::optional<Plan> thePlan;
};

/// The model in `payload`, which must outlive it: with the CPU form of `forms`
/// that this processor runs best (or the one called `form`), or for GPUs.
Result<Model> openModel(const Payload &payload, std::span<const tn_form> forms,
                        const std::string &form = "");

} // namespace tenon::rt

#endif // TENON_RUNTIME_PAYLOAD_H
