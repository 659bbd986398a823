//===- RunLine.h - what a `// run:` line says ----------------------------===//
//
// Part of Tenon, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef TENON_TOOLS_TENON_RUN_RUNLINE_H
#define TENON_TOOLS_TENON_RUN_RUNLINE_H

/// \file
/// The grammar of run lines:
/// \code
///   run         := '@' func '(' [argument {',' argument}] ')' [expectation]
///   argument    := literal
///                | 'random' '(' option {',' option} ')'
///                | ('ones' | 'zeros' | 'iota') ['(' option {',' option} ')']
///                | 'splat' '(' number {',' option} ')'
///   option      := name '=' number
///   literal     := number | 'true' | 'false' | '[' [literal {',' literal}] ']'
///   expectation := ('==' | '~') ('ref' | literal {',' literal})
///                      {',' ('rtol' | 'atol') '=' number}
///                | '!error:' text
/// \endcode
/// Options are `seed`, and for random values their range `low` (inclusive) and
/// `high` (exclusive); any other name is a symbol, whose value then holds for
/// the whole call. A literal gives the symbols of its own shape.

#include "ir/eval/Compare.h"
#include "llvm/ADT/SmallVector.h"
#include "llvm/ADT/StringRef.h"
#include "llvm/Support/Error.h"
#include <optional>
#include <string>
#include <vector>

namespace tenon::run {

/// A number as written: integers keep all 64 bits.
struct Number {
  double real = 0;
  int64_t integer = 0;
  bool isInteger = false;
};

/// A nested list; rank 0 for a lone number.
struct Literal {
  llvm::SmallVector<int64_t, 4> shape;
  std::vector<Number> elements;
};

struct Argument {
  enum class Form { Literal, Random, Iota, Splat };
  Form form = Form::Literal;
  Literal literal; ///< of Splat: its value
  uint64_t seed = 0;
  std::optional<Number> low, high;
};

struct Expectation {
  enum class Form {
    None,      ///< only run, and print the results
    Reference, ///< what the reference evaluator gives
    Literals,  ///< one for each result
    Error,     ///< fails with a message that contains `errorText`
  };
  Form form = Form::None;
  std::vector<Literal> literals;
  std::string errorText;
  ir::Tolerance tolerance;
};

struct Run {
  std::string func;
  std::vector<Argument> arguments;
  ir::DimEnv symbols;
  Expectation expectation;
};

/// Parses the text after `// run:`.
llvm::Expected<Run> parseRun(llvm::StringRef text);

} // namespace tenon::run

#endif // TENON_TOOLS_TENON_RUN_RUNLINE_H
