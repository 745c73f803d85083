// SPDX-License-Identifier: Apache-2.0
#pragma once
/// Kineto traces of PyTorch (2021 to 2025), and other Chrome traces with the same categories.
///
///   file        an object with traceEvents, or a bare array; objects before and behind in any
///               order; an end that is cut off
///   times       ts and dur in us, whole or with fractions, exact to the nanosecond; relative to
///               baseTimeNanoseconds, or since the epoch; whole numbers beyond 1e17 are ns
///   events      complete ones (X) and pairs (B, E); flows, instants and metadata are counted
///   ids         correlation, External id in both spellings, beyond int64; pid and tid as text
///   dirt        invalid UTF-8 (replaced), unescaped quotes (the event is lost, the next one is
///               found), durations that are negative or over 7 days (left out): each counted
///
/// What an op read ("Input Dims", "Input type", "Concrete Inputs") and what a collective moved are
/// kept; equal inputs are kept once. Of Python calls only those of modules (nn.Module: ...) are.
/// Memory is that of the events kept, not of the file: some 100 bytes an event.
///
/// Sources: pytorch/kineto libkineto/src/output_json.cpp; Chrome "Trace Event Format", 2016.
#include <memory>

#include "profiler/import/trace_reader.h"

namespace towtank {

[[nodiscard]] std::unique_ptr<TraceReader> kineto_reader();

}  // namespace towtank
