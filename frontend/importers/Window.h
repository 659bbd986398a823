//===- Window.h - sliding windows ------------------------------*- C++ -*-===//
//
// Part of Tenon, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef TENON_FRONTEND_IMPORTERS_WINDOW_H
#define TENON_FRONTEND_IMPORTERS_WINDOW_H

#include "frontend/Emitter.h"
#include "frontend/NodeView.h"

namespace tenon::frontend {

/// The sliding window of a convolution or pooling over each spatial dimension.
struct Window {
  ir::Ints kernel, strides, dilations, padLow, padHigh;
};

/// An attribute with one entry for each of \p count spatial dimensions, not
/// below \p least.
ir::Ints spatialInts(NodeView &node, llvm::StringRef name, size_t count,
                     int64_t byDefault, int64_t least);

/// Reads the attributes that convolutions and poolings share. \p kernel is
/// empty when the attribute must give it.
std::optional<Window> window(NodeView &node, Emitter &emit, ir::Value *x,
                             ir::Ints kernel);

/// The kernel's size that weights [M, C / group, kernel...] have, which must be
/// known; empty after an error.
ir::Ints kernelOf(NodeView &node, ir::Value *w);

/// How a window slides, as ConvAttrs and PoolAttrs both say it.
template <class Attrs> Attrs slideAttrs(const Window &w) {
  Attrs attrs;
  attrs.strides = w.strides;
  attrs.dilations = w.dilations;
  attrs.padLow = w.padLow;
  attrs.padHigh = w.padHigh;
  return attrs;
}

/// What the pools with a window share; nothing after a failure.
std::optional<ir::PoolAttrs> poolAttrs(NodeView &node, Emitter &emit,
                                       ir::Value *x);

/// Conv's convolution of \p x with \p w as the node's attributes say, without
/// the bias.
ir::Value *convolution(NodeView &node, Emitter &emit, ir::Value *x,
                       ir::Value *w);

/// \p y plus a bias for each channel, which may be null.
ir::Value *addChannelBias(NodeView &node, Emitter &emit, ir::Value *y,
                          ir::Value *bias);

} // namespace tenon::frontend

#endif // TENON_FRONTEND_IMPORTERS_WINDOW_H
