//===- Generate.h - text generation on the command line ------------------===//
//
// Part of Tenon, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef TENON_RUNTIME_MAIN_GENERATE_H
#define TENON_RUNTIME_MAIN_GENERATE_H

#include "runtime/Model.h"
#include "runtime/Payload.h"
#include "runtime/main/Options.h"

namespace tenon::rt {

/// --generate: streams the text that follows the prompt to standard output and
/// ends with the figures on standard error. With --json: one object instead.
Status generateText(const Payload &payload, const Model &model,
                    const Options &options);

/// --interactive: reads lines from standard input and answers each.
Status chat(const Payload &payload, const Model &model, const Options &options);

/// --show-steps: the way of one token through the model, stage by stage.
Status showSteps(const Payload &payload, const Model &model,
                 const Options &options);

} // namespace tenon::rt

#endif // TENON_RUNTIME_MAIN_GENERATE_H
