//===- Parallel.cpp - independent pieces of work on several threads -----===//
//
// Part of Tenon, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "codegen/toolchain/Parallel.h"

#include "runtime/Cpu.h"
#include <atomic>
#include <mutex>
#include <thread>
#include <vector>

namespace tenon::codegen {

llvm::Error parallelFor(size_t count, unsigned jobs,
                        llvm::function_ref<llvm::Error(size_t)> work) {
  std::atomic<size_t> next{0};
  std::atomic<bool> failed{false};
  std::mutex mutex;
  llvm::Error all = llvm::Error::success();
  auto loop = [&] {
    for (size_t i; !failed && (i = next.fetch_add(1)) < count;)
      if (llvm::Error error = work(i)) {
        std::lock_guard lock(mutex);
        failed = true;
        all = llvm::joinErrors(std::move(all), std::move(error));
      }
  };
  std::vector<std::thread> helpers;
  for (unsigned i = 1; i < jobs && i < count; ++i)
    helpers.emplace_back(loop);
  loop();
  for (std::thread &helper : helpers)
    helper.join();
  return all;
}

unsigned hostJobs(unsigned asked) {
  return asked ? asked : rt::availableCpus();
}

} // namespace tenon::codegen
