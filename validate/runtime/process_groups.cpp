// SPDX-License-Identifier: Apache-2.0
#include "validate/runtime/process_groups.h"

#include <torch/csrc/distributed/c10d/PrefixStore.hpp>
#include <torch/csrc/distributed/c10d/ProcessGroupGloo.hpp>
#include <torch/csrc/distributed/c10d/TCPStore.hpp>

#include <deque>
#include <stdexcept>
#include <utility>

#include "core/contracts.h"

namespace towtank {

struct Rendezvous::Store {
  c10::intrusive_ptr<c10d::Store> store;
};

namespace {

using Tensors = std::vector<at::Tensor>;
using Work = c10::intrusive_ptr<c10d::Work>;
using std::chrono::milliseconds;

/// Gloo knows no two-byte brain floats: what only moves them moves them as other two bytes.
at::Tensor as_bits(const at::Tensor& t) {
  return t.scalar_type() == at::kBFloat16 ? t.view(at::kHalf) : t;
}

class AloneGroup final : public ProcessGroup {
 public:
  [[nodiscard]] int size() const override { return 1; }
  [[nodiscard]] int rank() const override { return 0; }
  Pending all_reduce(at::Tensor, bool) override { return {}; }
  Pending all_gather(at::Tensor out, at::Tensor in) override { return copied(out, in); }
  Pending reduce_scatter(at::Tensor out, at::Tensor in) override { return copied(out, in); }
  Pending all_to_all(at::Tensor out, at::Tensor in, std::vector<std::int64_t>,
                     std::vector<std::int64_t>) override {
    return copied(out, in);
  }

 private:
  static Pending copied(at::Tensor& out, const at::Tensor& in) {
    if (out.data_ptr() != in.data_ptr()) out.view(-1).copy_(in.view(-1));
    return {};
  }
};

class GlooGroup final : public ProcessGroup {
 public:
  GlooGroup(c10::intrusive_ptr<c10d::ProcessGroupGloo> group, SpanKind kind, Recorder& recorder)
      : group_(std::move(group)), kind_(kind), recorder_(recorder) {}

  [[nodiscard]] int size() const override { return group_->getSize(); }
  [[nodiscard]] int rank() const override { return group_->getRank(); }

  Pending all_reduce(at::Tensor tensor, bool maximum) override {
    Tensors tensors{std::move(tensor)};
    c10d::AllreduceOptions options;
    options.reduceOp = maximum ? c10d::ReduceOp::MAX : c10d::ReduceOp::SUM;
    Work work = group_->allreduce(tensors, options);
    return pending(std::move(work), std::move(tensors));
  }

  Pending all_gather(at::Tensor out, at::Tensor in) override {
    EXPECTS(out.numel() == size() * in.numel());
    std::vector<Tensors> outputs{as_bits(out).view({size(), in.numel()}).unbind()};
    Tensors inputs{as_bits(in).view(-1)};
    Work work = group_->allgather(outputs, inputs);
    return pending(std::move(work), {std::move(out), std::move(in)});
  }

  Pending reduce_scatter(at::Tensor out, at::Tensor in) override {
    EXPECTS(in.numel() == size() * out.numel());
    at::Tensor parts = at::empty({size(), out.numel()}, in.options());
    at::Tensor from = in.view({size(), out.numel()});
    std::vector<std::int64_t> equal;
    Work work = group_->alltoall_base(parts, from, equal, equal);
    return Pending([this, work, parts, in, out]() mutable {
      const ScopedSpan span(recorder_, kind_);
      work->wait();
      at::Tensor sum = out.view(-1);
      sum.copy_(parts[0]);
      for (int r = 1; r < size(); ++r) sum.add_(parts[r]);
    });
  }

  Pending all_to_all(at::Tensor out, at::Tensor in, std::vector<std::int64_t> received,
                     std::vector<std::int64_t> sent) override {
    at::Tensor to = as_bits(out), from = as_bits(in);
    Work work = group_->alltoall_base(to, from, received, sent);
    return pending(std::move(work), {std::move(out), std::move(in), to, from});
  }

 private:
  Pending pending(Work work, Tensors kept) {
    return Pending([this, work = std::move(work), kept = std::move(kept)] {
      const ScopedSpan span(recorder_, kind_);
      work->wait();
    });
  }

  c10::intrusive_ptr<c10d::ProcessGroupGloo> group_;
  SpanKind kind_;
  Recorder& recorder_;
};

class GlooMailbox final : public Mailbox {
 public:
  GlooMailbox(c10::intrusive_ptr<c10d::ProcessGroupGloo> group, Recorder& recorder)
      : group_(std::move(group)), recorder_(recorder) {}

  void send(at::Tensor tensor, int to, int tag) override {
    while (!posted_.empty() && posted_.front().first->isCompleted()) wait_first();
    Tensors tensors{as_bits(tensor)};
    Work work = group_->send(tensors, to, tag);
    posted_.emplace_back(std::move(work), std::move(tensor));
    recorder_.mark(SpanKind::kSend, to, tag);
  }

  Pending receive(at::Tensor tensor, int from, int tag) override {
    Tensors tensors{as_bits(tensor)};
    Work work = group_->recv(tensors, from, tag);
    return Pending([this, work = std::move(work), tensor = std::move(tensor), from, tag] {
      recorder_.begin_message(SpanKind::kWaitPipeline, from, tag);
      work->wait();
      recorder_.end();
    });
  }

  void flush() override {
    while (!posted_.empty()) wait_first();
  }

 private:
  void wait_first() {
    posted_.front().first->wait();
    posted_.pop_front();
  }

  c10::intrusive_ptr<c10d::ProcessGroupGloo> group_;
  Recorder& recorder_;
  std::deque<std::pair<Work, at::Tensor>> posted_;
};

class NoMailbox final : public Mailbox {
 public:
  void send(at::Tensor, int, int) override { EXPECTS(false && "one rank sends nothing"); }
  Pending receive(at::Tensor, int, int) override {
    EXPECTS(false && "one rank receives nothing");
    return {};
  }
  void flush() override {}
};

c10::intrusive_ptr<c10d::Store> make_store(const RankPlace& place) {
  c10d::TCPStoreOptions options;
  options.port = static_cast<std::uint16_t>(place.port);
  options.isServer = place.rank == 0;
  options.waitWorkers = false;
  options.timeout = place.timeout;
  const std::string at = place.address + ":" + std::to_string(place.port);
  try {
    return c10::make_intrusive<c10d::TCPStore>(place.address, options);
  } catch (const std::exception& error) {
    // torch's own text is a page with a backtrace; what it says of use is one of two things.
    const std::string text = error.what();
    const bool in_use = text.find("ddress already in use") != std::string::npos ||
                        text.find("failed to bind") != std::string::npos;
    throw std::runtime_error(
        place.rank == 0
            ? (in_use ? "port " + std::to_string(place.port) +
                            " is in use: set MASTER_PORT to a free one"
                      : "rank 0 cannot listen on " + at)
            : "rank " + std::to_string(place.rank) + " found nobody at " + at + " within " +
                  std::to_string(place.timeout.count() / 1000) +
                  " s: is rank 0 running, and are MASTER_ADDR and MASTER_PORT its own?");
  }
}

/// Ranks base, base + stride, ... of the group that `rank` is in.
struct GroupMembers {
  int size = 1, own = 0, base = 0;
};
GroupMembers members_of(GroupStride stride, int rank) {
  const int own = rank / stride.stride % stride.size;
  return {stride.size, own, rank - own * stride.stride};
}

class GroupMaker {
 public:
  GroupMaker(Rendezvous& rendezvous, Recorder& recorder)
      : rendezvous_(rendezvous), recorder_(recorder) {}

  c10::intrusive_ptr<c10d::ProcessGroupGloo> gloo(const std::string& name, int own, int size) {
    auto options = c10d::ProcessGroupGloo::Options::create(rendezvous_.place().timeout);
    options->devices.push_back(device());
    // One thread keeps the operations of a group in order and a rank within its core.
    options->threads = 1;
    auto store = c10::make_intrusive<c10d::PrefixStore>(name, rendezvous_.store().store);
    return c10::make_intrusive<c10d::ProcessGroupGloo>(store, own, size, options);
  }

  std::unique_ptr<ProcessGroup> group(const std::string& axis, GroupStride stride, SpanKind kind) {
    if (stride.size == 1) return std::make_unique<AloneGroup>();
    const GroupMembers m = members_of(stride, rendezvous_.place().rank);
    const std::string name =
        axis + "/" + std::to_string(m.base) + "/" + std::to_string(stride.stride);
    return std::make_unique<GlooGroup>(gloo(name, m.own, m.size), kind, recorder_);
  }

 private:
  /// The interface that GLOO_SOCKET_IFNAME names is torch's own business: without a name it takes
  /// the one that the host's name resolves to; on one machine that is the address of rank 0.
  std::shared_ptr<::gloo::transport::Device> device() {
    const RankPlace& place = rendezvous_.place();
    if (!place.interface.empty()) {
      return c10d::ProcessGroupGloo::createDeviceForInterface(place.interface);
    }
    if (place.address == "127.0.0.1" || place.address == "localhost") {
      return c10d::ProcessGroupGloo::createDeviceForHostname("127.0.0.1");
    }
    return c10d::ProcessGroupGloo::createDefaultDevice();
  }

  Rendezvous& rendezvous_;
  Recorder& recorder_;
};

}  // namespace

Rendezvous::Rendezvous(const RankPlace& place) : place_(place), store_(std::make_unique<Store>()) {
  if (place.world == 1) return;
  store_->store = make_store(place);
  store_->store->setTimeout(place.timeout);
  barrier("start");
}

Rendezvous::~Rendezvous() = default;

void Rendezvous::set(const std::string& key, const std::string& text) {
  store_->store->set(key, std::vector<std::uint8_t>(text.begin(), text.end()));
}

std::string Rendezvous::get(const std::string& key) {
  const std::vector<std::uint8_t> bytes = store_->store->get(key);
  return {bytes.begin(), bytes.end()};
}

void Rendezvous::barrier(const std::string& name) {
  if (place_.world == 1) return;
  const std::string count = "barrier/" + name;
  const std::string done = count + "/done";
  const std::int64_t came = store_->store->add(count, 1);
  if (came == place_.world) set(done, "1");
  try {
    store_->store->wait({done}, place_.timeout);
  } catch (const std::exception&) {
    std::string here = "an unknown number";
    try {
      here = std::to_string(store_->store->add(count, 0));
    } catch (const std::exception&) {
      throw std::runtime_error("rank " + std::to_string(place_.rank) +
                               " lost rank 0 while it waited for the other ranks");
    }
    throw std::runtime_error("of " + std::to_string(place_.world) + " ranks only " + here +
                             " came to " + name + " within " +
                             std::to_string(place_.timeout.count() / 1000) + " s");
  }
}

RankGroups make_groups(Rendezvous& rendezvous, const Plan& plan, Recorder& recorder) {
  GroupMaker make(rendezvous, recorder);
  RankGroups groups;
  groups.tensor = make.group("tensor", group_of(plan, Axis::kTensor), SpanKind::kWaitTensor);
  groups.expert = make.group("expert", group_of(plan, Axis::kExpert), SpanKind::kWaitExpert);
  groups.data = make.group("data", gradient_group(plan, false), SpanKind::kWaitData);
  groups.expert_data = make.group("expert data", gradient_group(plan, true), SpanKind::kWaitData);
  groups.ends = std::make_unique<AloneGroup>();
  groups.mail = std::make_unique<NoMailbox>();
  if (plan.pipeline == 1) return groups;
  const RankPlace& place = rendezvous.place();
  groups.mail =
      std::make_unique<GlooMailbox>(make.gloo("world", place.rank, place.world), recorder);
  const RankCoordinates own = coordinates_of(plan, place.rank);
  if (own.pipeline == 0 || own.pipeline == plan.pipeline - 1) {
    const GroupStride pipeline = group_of(plan, Axis::kPipeline);
    groups.ends =
        make.group("ends", {2, pipeline.stride * (plan.pipeline - 1)}, SpanKind::kWaitData);
  }
  return groups;
}

}  // namespace towtank
