//===- Streams.cpp - streams and events ----------------------------------===//
//
// Part of Tenon, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/emulator/driver/Driver.h"

#include <chrono>

using namespace tenon::emu;

namespace {

using Time = std::chrono::steady_clock::time_point;

/// Queues of all streams, for those who wait for everything.
std::vector<std::shared_ptr<Queue>> &queues() {
  static auto *made = new std::vector<std::shared_ptr<Queue>>;
  return *made;
}

} // namespace

struct CUevent_st {
  std::shared_ptr<Time> when = std::make_shared<Time>();
  bool recorded = false;
  std::shared_ptr<CUgraph_st> capture; // recorded while capturing
  // What must be done before it has happened, where work is put off.
  std::shared_ptr<Queue> queue;
  uint64_t count = 0;

  CUresult finish() const {
    std::lock_guard<std::recursive_mutex> lock(Driver::get().mutex);
    return queue ? queue->finish(count) : checkDriver();
  }
};

CUresult Queue::finish(uint64_t count) {
  while (done < count && !commands.empty()) {
    Command next = std::move(commands.front());
    commands.pop_front();
    ++done;
    if (CUresult error = checkDriver())
      return error;
    if (CUresult error = next())
      return error;
  }
  return checkDriver();
}

CUresult tenon::emu::finishAll() {
  std::lock_guard<std::recursive_mutex> lock(Driver::get().mutex);
  for (const std::shared_ptr<Queue> &queue : queues())
    if (CUresult error = queue->finish(queue->added))
      return error;
  return checkDriver();
}

CUresult tenon::emu::submit(CUstream stream, Command command) {
  std::lock_guard<std::recursive_mutex> lock(Driver::get().mutex);
  if (CUresult error = checkDriver())
    return error;
  if (stream && stream->capture) {
    stream->capture->commands.push_back(std::move(command));
    return CUDA_SUCCESS;
  }
  if (stream && Driver::get().late()) {
    stream->queue->commands.push_back(std::move(command));
    ++stream->queue->added;
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
  std::lock_guard<std::recursive_mutex> lock(Driver::get().mutex);
  queues().push_back((*stream)->queue);
  return CUDA_SUCCESS;
}
TN_EXPORT CUresult cuStreamCreateWithPriority(CUstream *stream, unsigned flags,
                                              int) {
  return cuStreamCreate(stream, flags);
}

TN_EXPORT CUresult cuStreamDestroy_v2(CUstream stream) {
  if (!stream)
    return CUDA_ERROR_INVALID_HANDLE;
  std::lock_guard<std::recursive_mutex> lock(Driver::get().mutex);
  (void)stream->queue->finish(stream->queue->added);
  std::erase(queues(), stream->queue);
  delete stream;
  return CUDA_SUCCESS;
}

TN_EXPORT CUresult cuStreamSynchronize(CUstream stream) {
  if (stream && stream->capture)
    return CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
  std::lock_guard<std::recursive_mutex> lock(Driver::get().mutex);
  return stream ? stream->queue->finish(stream->queue->added) : finishAll();
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
  if (!event->queue || event->capture)
    return CUDA_SUCCESS;
  return submit(stream, [queue = event->queue, count = event->count] {
    return queue->finish(count);
  });
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
  event->recorded = true;
  event->queue = nullptr;
  CUresult error = submit(stream, [when = event->when] {
    *when = std::chrono::steady_clock::now();
    return CUDA_SUCCESS;
  });
  if (stream && !event->capture) {
    event->queue = stream->queue;
    event->count = stream->queue->added;
  }
  return error;
}
TN_EXPORT CUresult cuEventSynchronize(CUevent event) {
  return event ? event->finish() : CUDA_ERROR_INVALID_HANDLE;
}
TN_EXPORT CUresult cuEventQuery(CUevent event) {
  return event ? event->finish() : CUDA_ERROR_INVALID_HANDLE;
}
TN_EXPORT CUresult cuEventElapsedTime(float *milliseconds, CUevent begin,
                                      CUevent end) {
  if (!milliseconds)
    return CUDA_ERROR_INVALID_VALUE;
  if (!begin || !end || !begin->recorded || !end->recorded)
    return CUDA_ERROR_INVALID_HANDLE;
  *milliseconds =
      std::chrono::duration<float, std::milli>(*end->when - *begin->when)
          .count();
  return CUDA_SUCCESS;
}
TN_EXPORT CUresult cuEventElapsedTime_v2(float *milliseconds, CUevent begin,
                                         CUevent end) {
  return cuEventElapsedTime(milliseconds, begin, end);
}
