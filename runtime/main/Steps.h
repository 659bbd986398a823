//===- Steps.h - one token's way through a language model ----------------===//
//
// Part of Tenon, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef TENON_RUNTIME_MAIN_STEPS_H
#define TENON_RUNTIME_MAIN_STEPS_H

#include "runtime/TextGenerator.h"

namespace tenon::rt {

/// Feeds `prompt` and describes what its last token went through: text to id,
/// embedding, each layer's attention and feed-forward with the norms between
/// them, output head, softmax, and the most probable next tokens; with shapes,
/// floating-point operations, bytes and times.
Result<std::string> stepsText(TextGenerator &generator, TextCodec &codec,
                              std::span<const uint32_t> prompt);

} // namespace tenon::rt

#endif // TENON_RUNTIME_MAIN_STEPS_H
