//===- Graphs.cpp - graphs, recorded from streams ------------------------===//
//
// Part of Tenon, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/emulator/driver/Driver.h"

using namespace tenon::emu;

namespace {

/// Graphs handed out, which streams of an ended capture may still know.
struct Owner {
  std::mutex mutex;
  std::vector<std::shared_ptr<CUgraph_st>> graphs;
};
Owner &owner() {
  static Owner *made = new Owner;
  return *made;
}

CUresult instantiate(CUgraphExec *out, CUgraph graph) {
  if (!out || !graph)
    return CUDA_ERROR_INVALID_VALUE;
  auto *made = new CUgraphExec_st;
  made->commands =
      std::make_shared<const std::vector<Command>>(graph->commands);
  *out = made;
  return CUDA_SUCCESS;
}

} // namespace

TN_EXPORT CUresult cuStreamBeginCapture_v2(CUstream stream,
                                           CUstreamCaptureMode) {
  if (CUresult error = checkDriver())
    return error;
  if (!stream)
    return CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
  if (stream->capture)
    return CUDA_ERROR_ILLEGAL_STATE;
  stream->capture = std::make_shared<CUgraph_st>();
  stream->captureOrigin = true;
  return CUDA_SUCCESS;
}

TN_EXPORT CUresult cuStreamEndCapture(CUstream stream, CUgraph *graph) {
  if (!stream || !graph)
    return CUDA_ERROR_INVALID_VALUE;
  if (!stream->capture || !stream->captureOrigin)
    return CUDA_ERROR_ILLEGAL_STATE;
  std::lock_guard<std::mutex> lock(owner().mutex);
  *graph = stream->capture.get();
  owner().graphs.push_back(std::move(stream->capture));
  stream->capture = nullptr;
  stream->captureOrigin = false;
  return CUDA_SUCCESS;
}

TN_EXPORT CUresult cuStreamIsCapturing(CUstream stream, int *status) {
  if (!status)
    return CUDA_ERROR_INVALID_VALUE;
  *status = stream && stream->capture ? 1 : 0;
  return CUDA_SUCCESS;
}

TN_EXPORT CUresult cuGraphDestroy(CUgraph graph) {
  std::lock_guard<std::mutex> lock(owner().mutex);
  size_t erased = std::erase_if(
      owner().graphs, [&](const auto &known) { return known.get() == graph; });
  return erased ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

TN_EXPORT CUresult cuGraphInstantiateWithFlags(CUgraphExec *exec, CUgraph graph,
                                               unsigned long long) {
  return instantiate(exec, graph);
}

TN_EXPORT CUresult cuGraphExecDestroy(CUgraphExec exec) {
  if (!exec)
    return CUDA_ERROR_INVALID_VALUE;
  delete exec;
  return CUDA_SUCCESS;
}

TN_EXPORT CUresult cuGraphLaunch(CUgraphExec exec, CUstream stream) {
  if (!exec)
    return CUDA_ERROR_INVALID_VALUE;
  return submit(stream, [commands = exec->commands] {
    for (const Command &command : *commands)
      if (CUresult error = command())
        return error;
    return CUDA_SUCCESS;
  });
}
