//===- Streams.cpp - streams and events ----------------------------------===//
//
// Part of Tenon, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/emulator/driver/Driver.h"

#include <chrono>

using namespace tenon::emu;

struct CUevent_st {
  std::chrono::steady_clock::time_point when;
  bool recorded = false;
  std::shared_ptr<CUgraph_st> capture; // recorded while capturing
};

CUresult tenon::emu::submit(CUstream stream, Command command) {
  std::lock_guard<std::recursive_mutex> lock(Driver::get().mutex);
  if (CUresult error = checkDriver())
    return error;
  if (stream && stream->capture) {
    stream->capture->commands.push_back(std::move(command));
    return CUDA_SUCCESS;
  }
  return command();
}

TN_EXPORT CUresult cuStreamCreate(CUstream *stream, unsigned) {
  if (CUresult error = checkDriver())
    return error;
  if (!stream)
    return CUDA_ERROR_INVALID_VALUE;
  *stream = new CUstream_st;
  return CUDA_SUCCESS;
}
TN_EXPORT CUresult cuStreamCreateWithPriority(CUstream *stream, unsigned flags,
                                              int) {
  return cuStreamCreate(stream, flags);
}

TN_EXPORT CUresult cuStreamDestroy_v2(CUstream stream) {
  if (!stream)
    return CUDA_ERROR_INVALID_HANDLE;
  delete stream;
  return CUDA_SUCCESS;
}

TN_EXPORT CUresult cuStreamSynchronize(CUstream stream) {
  if (stream && stream->capture)
    return CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
  return checkDriver();
}
TN_EXPORT CUresult cuStreamQuery(CUstream stream) {
  return cuStreamSynchronize(stream);
}

TN_EXPORT CUresult cuStreamWaitEvent(CUstream stream, CUevent event, unsigned) {
  if (CUresult error = checkDriver())
    return error;
  if (!event)
    return CUDA_ERROR_INVALID_HANDLE;
  // Waiting for captured work makes a stream part of the capture.
  if (event->capture && stream && !stream->capture)
    stream->capture = event->capture;
  return CUDA_SUCCESS;
}

TN_EXPORT CUresult cuEventCreate(CUevent *event, unsigned) {
  if (CUresult error = checkDriver())
    return error;
  if (!event)
    return CUDA_ERROR_INVALID_VALUE;
  *event = new CUevent_st;
  return CUDA_SUCCESS;
}
TN_EXPORT CUresult cuEventDestroy_v2(CUevent event) {
  if (!event)
    return CUDA_ERROR_INVALID_HANDLE;
  delete event;
  return CUDA_SUCCESS;
}
TN_EXPORT CUresult cuEventRecord(CUevent event, CUstream stream) {
  if (CUresult error = checkDriver())
    return error;
  if (!event)
    return CUDA_ERROR_INVALID_HANDLE;
  event->capture = stream ? stream->capture : nullptr;
  event->when = std::chrono::steady_clock::now();
  event->recorded = true;
  return CUDA_SUCCESS;
}
TN_EXPORT CUresult cuEventSynchronize(CUevent event) {
  return event ? checkDriver() : CUDA_ERROR_INVALID_HANDLE;
}
TN_EXPORT CUresult cuEventQuery(CUevent event) {
  return event ? checkDriver() : CUDA_ERROR_INVALID_HANDLE;
}
TN_EXPORT CUresult cuEventElapsedTime(float *milliseconds, CUevent begin,
                                      CUevent end) {
  if (!milliseconds)
    return CUDA_ERROR_INVALID_VALUE;
  if (!begin || !end || !begin->recorded || !end->recorded)
    return CUDA_ERROR_INVALID_HANDLE;
  *milliseconds =
      std::chrono::duration<float, std::milli>(end->when - begin->when).count();
  return CUDA_SUCCESS;
}
TN_EXPORT CUresult cuEventElapsedTime_v2(float *milliseconds, CUevent begin,
                                         CUevent end) {
  return cuEventElapsedTime(milliseconds, begin, end);
}
