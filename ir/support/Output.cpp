//===- Output.cpp - files written whole ----------------------------------===//
//
// Part of Tenon, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "ir/support/Output.h"
#include "ir/support/Diag.h"
#include "llvm/ADT/SmallString.h"
#include "llvm/Support/FileSystem.h"

using namespace llvm;

namespace tenon {

namespace {

/// What became of all that \p os was given.
Error finish(raw_fd_ostream &os) {
  os.flush();
  std::error_code failed = os.error();
  os.clear_error(); // else the destructor ends the program
  return errorCodeToError(failed);
}

Error writeTo(int fd, function_ref<void(raw_ostream &)> write) {
  raw_fd_ostream os(fd, /*shouldClose=*/false);
  write(os);
  return finish(os);
}

Error writeInPlace(StringRef path, function_ref<void(raw_ostream &)> write) {
  std::error_code failed;
  raw_fd_ostream os(path, failed, sys::fs::CD_OpenExisting);
  if (failed)
    return errorCodeToError(failed);
  write(os);
  return finish(os);
}

Error writeBeside(StringRef path, function_ref<void(raw_ostream &)> write) {
  SmallString<128> end;
  if (sys::fs::real_path(path, end)) // nothing there yet
    end = path;
  Expected<sys::fs::TempFile> file = sys::fs::TempFile::create(
      end + ".tmp%%%%%%%%", sys::fs::all_read | sys::fs::all_write);
  if (!file)
    return file.takeError();
  if (Error error = writeTo(file->FD, write))
    return joinErrors(std::move(error), file->discard());
  return file->keep(end);
}

} // namespace

Error writeWhole(StringRef path, function_ref<void(raw_ostream &)> write) {
  sys::fs::file_status status;
  bool isThere = !sys::fs::status(path, status);
  bool isFile =
      !isThere || status.type() == sys::fs::file_type::regular_file ||
      status.type() == sys::fs::file_type::directory_file; // refused below
  return withPrefix(isFile ? writeBeside(path, write)
                           : writeInPlace(path, write),
                    path + ": cannot be written: ");
}

} // namespace tenon
