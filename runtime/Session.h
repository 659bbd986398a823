//===- Session.h - one caller's runs of a model -------------------------===//
//
// Part of Tenon, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef TENON_RUNTIME_SESSION_H
#define TENON_RUNTIME_SESSION_H

#include "runtime/Binding.h"
#include "runtime/Fault.h"
#include "runtime/Frame.h"
#include "runtime/Model.h"
#include "runtime/Npz.h"
#include "runtime/device/Device.h"

#include <optional>

namespace tenon::rt {

/// An output after a run.
struct OutputValue {
  DType dtype = DType::F32;
  std::span<const int64_t> shape; ///< valid until the next run
  void *data = nullptr;           ///< C order, contiguous
  uint64_t bytes = 0;
};

/// Runs a model on a device: holds its inputs, temporaries and outputs. For one
/// caller at a time; several sessions of one model may run at the same time.
class Session {
public:
  /// On what the model is compiled for: `threads` of the CPU (0 takes
  /// defaultThreads()), or the first GPU; $TENON_DEVICE=emulated takes the
  /// emulator. `model` must outlive the session.
  static Result<std::unique_ptr<Session>> create(const Model &model,
                                                 unsigned threads = 0);
  /// On `device`, which was made for `model`.
  static std::unique_ptr<Session> create(const Model &model,
                                         std::unique_ptr<Device> device);

  const Model &model() const { return theModel; }
  const Device &device() const { return *theDevice; }
  unsigned threads() const { return theDevice->workers(); }

  /// Gives input `index`; `data`, in C order, is not copied and must stay valid
  /// and aligned to its element size for each run.
  Status setInput(size_t index, DType dtype, std::span<const int64_t> shape,
                  const void *data);
  /// Same, by the model's name for it.
  Status setInput(const std::string &name, DType dtype,
                  std::span<const int64_t> shape, const void *data);
  /// Has output `index` written to `capacity` bytes at `data`; null data means
  /// the session's own memory, the default.
  Status setOutput(size_t index, void *data, uint64_t capacity);

  //===- State
  //--------------------------------------------------------------===//
  // Where the plan has states, the inputs and outputs that are one memory need
  // not be given or taken: what a run leaves is what the next one finds.

  /// How long the states are: what runs have appended since the last reset().
  int64_t length() const { return stateLengths[selected]; }
  /// How long they may become; INT64_MAX without states.
  int64_t capacity() const;
  /// Empties the states.
  void reset() { stateLengths[selected] = 0; }
  /// Holds `count` sets of states of the same sizes from now on, all empty; the
  /// first is selected.
  void keepStates(size_t count);
  /// Has runs, length() and reset() use set number `which`.
  void selectStates(size_t which) { selected = which; }
  /// Whether outputs that are states are copied out after each run (the
  /// default) or have no data.
  void copyStates(bool wanted) { statesWanted = wanted; }

  /// Has sizes that are a session's choice (how many of the last tokens get
  /// logits) be `most` at most from now on.
  void limitChosen(int64_t most) { chosen = most; }

  /// Binds the symbols to the inputs' shapes; run() does so too.
  Status bind();
  /// Peak memory for the bound shapes, copiedBytes() included, or nothing when
  /// data define it.
  std::optional<int64_t> peakBytes() const;
  /// What copies of the states take after a run with the bound shapes.
  int64_t copiedBytes() const;
  /// Floating-point operations and bytes of a run with the shapes of the last.
  int64_t flops() const { return total(&Launch::flops); }
  int64_t bytes() const { return total(&Launch::bytes); }

  /// Values of the plan's expressions in the last run.
  std::span<const int64_t> values() const { return frame.values(); }

  /// Runs the model. Wrong data (an index out of range) end the run early with
  /// an error; what outputs in the caller's memory hold is then undefined. The
  /// session stays usable after any error.
  Status run();
  /// Output `index` of the last run.
  const OutputValue &output(size_t index) const { return results[index].value; }

  /// From now on run() notes when each thread works on each launch.
  void enableProfile() { theDevice->enableProfile(); }
  std::span<const LaunchTime> profile() const { return theDevice->profile(); }

private:
  Session(const Model &model, std::unique_ptr<Device> device);

  struct OutputSlot {
    void *callerData = nullptr;
    uint64_t capacity = 0;
    AlignedBytes own;
    uint64_t ownBytes = 0;
    void *placed = nullptr; ///< where the units' result is brought
    std::vector<int64_t> dims;
    OutputValue value;
  };

  int64_t total(ExprId Launch::*cost) const;
  /// The memory of output `index`, `bytes` long.
  Result<char *> outputMemory(size_t index, uint64_t bytes);
  Status placeOutputs(uint32_t segment);
  Status runSegment(uint32_t segment);
  Status bindFromData(size_t index);
  Status finishOutput(size_t index);
  int64_t newLength() const;
  Status checkRoom() const;
  Status placeStates();
  Status reserveStates(std::vector<uint64_t> offsets);
  char *stateAt(size_t index) const {
    return stateMemory + selected * stateOffsets.back() + stateOffsets[index];
  }
  Status fillState(const State &state);
  Status copyOut(const tn_view &view, size_t rank, size_t size, char *to);

  const Model &theModel;
  const Plan &plan;
  std::unique_ptr<Device> theDevice;
  Frame frame;
  std::vector<InputValue> inputs;
  std::vector<OutputSlot> results;
  std::vector<int64_t> symbols;
  int64_t chosen = INT64_MAX;
  std::vector<int64_t> stateLengths = {0}; ///< of each set
  size_t selected = 0;                     ///< set of states
  bool statesWanted = true;
  char *stateMemory = nullptr;
  /// Of a set, and its end, as last placed.
  std::vector<uint64_t> stateOffsets;
};

} // namespace tenon::rt

#endif // TENON_RUNTIME_SESSION_H
