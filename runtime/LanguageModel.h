//===- LanguageModel.h - feeds tokens to a causal model -----------------===//
//
// Part of Tenon, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef TENON_RUNTIME_LANGUAGEMODEL_H
#define TENON_RUNTIME_LANGUAGEMODEL_H

#include "runtime/Session.h"

namespace tenon::rt {

/// A causal language model with its memory of the tokens so far: give it
/// tokens, read the logits of the next one.
///
/// The model's inputs are known by their names, as exporters write them:
/// `input_ids` [batch, n], and if they are there `attention_mask` [batch, all],
/// `position_ids` [batch, n] and caches `past...` that go with outputs
/// `present...`. The memory is, in order of preference, the plan's state
/// (compiled with --max-context), caches that go from outputs to inputs, or, in
/// a model without either, all tokens, computed anew each time.
///
/// \code
///   auto lm = LanguageModel::create(model);
///   lm->feed(prompt);                            // prefill
///   while (...)
///     lm->feed({&token, 1});                     // decode
/// \endcode
class LanguageModel {
public:
  /// `rows` sequences are fed side by side. `threads` as for Session. `model`
  /// must outlive the result. Fails when the model is no language model, with
  /// the reason.
  static Result<std::unique_ptr<LanguageModel>>
  create(const Model &model, unsigned threads = 0, size_t rows = 1);
  /// The same on \p device.
  static Result<std::unique_ptr<LanguageModel>>
  create(const Model &model, std::unique_ptr<Device> device, size_t rows = 1);

  /// The number of logits; token ids are below it.
  int64_t vocabulary() const { return numLogits; }
  /// How many tokens a row may hold; INT64_MAX when nothing limits it.
  int64_t capacity() const;
  /// Tokens in each row, padding included.
  int64_t position() const { return fed; }
  size_t rows() const { return numRows; }

  /// Appends `tokens`, [rows, n] in C order with n >= 1, to the sequences and
  /// computes. `real`, of the same size, is 0 where a token is padding, which
  /// nothing attends to; empty means none is. Wherever it stands, what reaches
  /// the model has it where the model wants it (Layout). Where padding would
  /// change what a model computes (Padding of its plan), and where it takes no
  /// such batch, rows are computed one after another from then on. After a
  /// failure the sequences are as before, but for running out of memory in the
  /// middle.
  Status feed(std::span<const int64_t> tokens,
              std::span<const uint8_t> real = {});

  /// For what follows the last real token of `row`, as the last feed() that had
  /// one computed it: vocabulary() logits, valid until the next feed().
  std::span<const float> logits(size_t row = 0) const;

  /// Forgets all tokens.
  void reset();

  /// For times, FLOPs and bytes of the last feed().
  Session &session() { return *runs; }

private:
  enum class Role { Tokens, Mask, Positions, Past };
  /// Where a row's tokens are among what the model sees.
  enum class Layout {
    Whole, ///< all are computed anew, from the front, padding behind
    Front, ///< caches too count them from the front, by the sum of the mask
    Slots, ///< caches have a slot for all that was fed, padding in front first
  };
  /// A cache that is an input and, longer or as long, an output.
  struct Cache {
    size_t input, output;
    size_t axis; ///< the dimension that grows
    /// The length of one that drops old tokens; 0 for one that grows.
    int64_t length;
    AlignedBytes memory[2];
    uint64_t bytes[2] = {0, 0};
  };

  static Result<std::unique_ptr<LanguageModel>>
  create(std::shared_ptr<Session> session, size_t rows);
  explicit LanguageModel(std::shared_ptr<Session> session, size_t rows)
      : runs(std::move(session)), plan(runs->model().plan()), numRows(rows) {}
  Status readInputs();
  Status readOutputs();
  Status pairCaches();
  Result<Cache> pair(size_t input, size_t output) const;
  Result<Role> roleOf(const std::string &name) const;
  void findLayout();
  bool countsFromFront(size_t output, size_t axis) const;
  bool hasState() const;
  /// How large dimension `dim` of an input may be.
  int64_t mostOf(size_t input, size_t dim) const;
  Status checkTokens(std::span<const int64_t> tokens,
                     std::span<const uint8_t> real) const;
  /// What a row's inputs are for `columns` new tokens of which the last `n` are
  /// fed now.
  struct RowInputs {
    std::vector<int64_t> tokens, positions, mask;
  };
  /// Whether the model cannot take all rows at once with this padding.
  bool mustPart(std::span<const uint8_t> real) const;
  Status part();
  Status compute(size_t n, std::span<const uint8_t> real);
  Status computeApart();
  RowInputs inputsOf(size_t row, size_t n, size_t columns) const;
  void append(size_t row, std::span<const int64_t> tokens,
              std::span<const uint8_t> real);
  Status setInputs(size_t n);
  Status setNumbers(size_t input, const std::vector<int64_t> &numbers);
  Status setCaches(size_t n);
  Status reserve(Cache &cache, unsigned memory, std::span<const int64_t> shape);
  void findLast(size_t n, std::span<const uint8_t> real);
  /// Of the tokens that a run is given, for `n` that are fed.
  size_t columnsFor(size_t n) const;
  Status keepLogits();

  std::shared_ptr<Session> runs;
  const Plan &plan;
  size_t slot = 0; ///< which of the session's states it uses
  /// A model for each row, once rows are computed one after another.
  std::vector<std::unique_ptr<LanguageModel>> apart;
  size_t numRows;
  int64_t numLogits = 0, fed = 0;
  size_t logitsOutput = 0;
  std::vector<Role> roles; ///< of the inputs
  std::vector<Cache> caches;
  unsigned parity = 0; ///< which memory of the caches holds the past
  Layout layout = Layout::Whole;
  std::vector<std::vector<int64_t>> sequences; ///< real tokens of each row
  /// Of each row's slots, whether one has a token; those fed last with it.
  std::vector<std::vector<uint8_t>> isReal;
  std::vector<std::vector<char>> inputData; ///< what the inputs point to
  /// How many tokens from the end of what a run is given each row's last is,
  /// 1 for the very last; 0 when there is none.
  std::vector<size_t> fromEnd;
  std::vector<float> lastLogits; ///< [rows, vocabulary]
};

} // namespace tenon::rt

#endif // TENON_RUNTIME_LANGUAGEMODEL_H
