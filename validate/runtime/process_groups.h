// SPDX-License-Identifier: Apache-2.0
#pragma once
/// The process groups of a rank, one for each axis of its plan, over Gloo.
///
/// What Gloo as torch 1.13 wraps it lacks, and how it is built here:
///
///   reduce-scatter   an all-to-all of the parts, each rank then sums the parts that it got, in the
///                    order of ranks: (n-1)/n of the payload out of each rank, as a ring sends
///   all-gather       into one tensor: an all-gather into views of it
///   all-reduce in 2-byte floats is not needed: sums run in fp32 or fp64
///
/// Everything else (all-reduce by ring, all-to-all with unequal parts, send and receive) is Gloo's.
/// A group of one rank does nothing. Waits are recorded; what runs beside computation is not, until
/// somebody waits for it.
#include <chrono>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "placement/plan.h"
#include "profiler/collect/torch_compat.h"
#include "validate/run/recorder.h"

namespace towtank {

struct RankPlace {
  int rank = 0, world = 1;
  std::string address = "127.0.0.1";
  int port = 29500;
  std::string interface;  ///< network interface for Gloo; empty: that of the address
  std::chrono::milliseconds timeout{std::chrono::seconds(60)};
};

/// What is under way; its tensors live until it is waited for. Movable.
class Pending {
 public:
  Pending() = default;
  explicit Pending(std::function<void()> wait) : wait_(std::move(wait)) {}
  [[nodiscard]] explicit operator bool() const { return static_cast<bool>(wait_); }
  void wait() {
    if (auto wait = std::exchange(wait_, nullptr)) wait();
  }

 private:
  std::function<void()> wait_;
};

class ProcessGroup {
 public:
  virtual ~ProcessGroup() = default;
  [[nodiscard]] virtual int size() const = 0;
  [[nodiscard]] virtual int rank() const = 0;
  /// In place. Tensors are contiguous.
  virtual Pending all_reduce(at::Tensor tensor, bool maximum = false) = 0;
  /// out.numel() = size * in.numel().
  virtual Pending all_gather(at::Tensor out, at::Tensor in) = 0;
  /// in.numel() = size * out.numel(); out is overwritten with the sum.
  virtual Pending reduce_scatter(at::Tensor out, at::Tensor in) = 0;
  /// Rows of in go to the ranks in order, as many as `sent` says; empty: equal parts.
  virtual Pending all_to_all(at::Tensor out, at::Tensor in, std::vector<std::int64_t> received,
                             std::vector<std::int64_t> sent) = 0;
};

/// Where ranks meet, and words between them. Throws std::runtime_error that names address, port and
/// what is wrong: in use, nobody listens, too few came within the timeout.
class Rendezvous {
 public:
  explicit Rendezvous(const RankPlace&);
  ~Rendezvous();
  Rendezvous(const Rendezvous&) = delete;
  Rendezvous& operator=(const Rendezvous&) = delete;
  void set(const std::string& key, const std::string& text);
  [[nodiscard]] std::string get(const std::string& key);
  /// Every rank calls it: none passes before all have come.
  void barrier(const std::string& name);

  struct Store;
  [[nodiscard]] Store& store() { return *store_; }
  [[nodiscard]] const RankPlace& place() const { return place_; }

 private:
  RankPlace place_;
  std::unique_ptr<Store> store_;
};

/// Pipeline messages between any two ranks. Sends are posted; a receive is posted early and waited
/// for where its tensor is needed, since Gloo moves data only when both sides have asked.
class Mailbox {
 public:
  virtual ~Mailbox() = default;
  virtual void send(at::Tensor tensor, int to, int tag) = 0;
  virtual Pending receive(at::Tensor tensor, int from, int tag) = 0;
  /// Waits for all sends.
  virtual void flush() = 0;
};

struct RankGroups {
  std::unique_ptr<ProcessGroup> tensor, data, expert, expert_data;
  std::unique_ptr<ProcessGroup> ends;  ///< first and last stage, where they share a table
  std::unique_ptr<Mailbox> mail;
};

/// Collective: every rank calls it with the same plan.
[[nodiscard]] RankGroups make_groups(Rendezvous&, const Plan&, Recorder&);

}  // namespace towtank
