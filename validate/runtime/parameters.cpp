// SPDX-License-Identifier: Apache-2.0
#include "validate/runtime/parameters.h"

#include <ATen/CPUGeneratorImpl.h>

#include <algorithm>
#include <cmath>
#include <numeric>

#include "core/contracts.h"
#include "core/rng.h"
#include "validate/runtime/memory_meter.h"

namespace towtank {
namespace {

/// FNV-1a: a parameter's numbers depend on its name and the seed only.
std::uint64_t hash_of(const std::string& text) {
  std::uint64_t hash = 0xcbf29ce484222325ULL;
  for (const char c : text) hash = (hash ^ static_cast<unsigned char>(c)) * 0x100000001b3ULL;
  return hash;
}

std::int64_t product(const std::vector<std::int64_t>& sizes) {
  return std::accumulate(sizes.begin(), sizes.end(), std::int64_t{1}, std::multiplies<>());
}

at::Tensor initial_value(const Parameter& p, std::uint64_t seed, at::ScalarType dtype) {
  const MemoryScope scope(MemoryKind::kWorking);
  if (p.initial == 0) return at::full(p.shape(), p.fill, at::TensorOptions().dtype(dtype));
  // Drawn in fp32 whole, then cut: every plan starts from the same numbers.
  at::Generator generator = at::detail::createCPUGenerator(Rng(seed ^ hash_of(p.name)).next());
  at::Tensor whole = at::randn(p.whole, generator, at::TensorOptions().dtype(at::kFloat));
  whole.mul_(p.initial);
  if (p.split >= 0) {
    const std::int64_t size = p.whole[static_cast<std::size_t>(p.split)] / p.parts;
    whole = whole.narrow(p.split, p.part * size, size);
  }
  return whole.to(dtype);
}

}  // namespace

std::vector<std::int64_t> Parameter::shape() const {
  std::vector<std::int64_t> own = whole;
  if (split >= 0) own[static_cast<std::size_t>(split)] /= parts;
  return own;
}

std::int64_t Parameter::numel() const { return product(shape()); }

std::size_t Flat::add(Parameter parameter) {
  EXPECTS(padded_ == 0);
  parameter.offset = used_;
  used_ += parameter.numel();
  // Partial ones stand first, so that one small all-reduce sums them.
  if (parameter.partial) {
    EXPECTS(partial_ == parameter.offset);
    partial_ = used_;
  }
  parameters_.push_back(std::move(parameter));
  return parameters_.size() - 1;
}

void Flat::complete() {
  const std::int64_t n = shared_.size();
  padded_ = std::max<std::int64_t>(1, (used_ + n - 1) / n) * n;
  const auto options = at::TensorOptions().dtype(options_.dtype);
  const bool sharded = options_.sharding_stage >= 1;
  const std::int64_t part = sharded ? padded_ / n : padded_;
  {
    const MemoryScope scope(MemoryKind::kParameters);
    whole_ = at::zeros({padded_}, options);
    initialise();
    main_ = sharded ? whole_.narrow(0, shared_.rank() * part, part) : whole_;
    if (options_.sharding_stage == 3 && n > 1) {
      main_ = main_.clone();
      whole_ = at::Tensor();
    }
  }
  {
    const MemoryScope scope(MemoryKind::kOptimizer);
    mean_ = at::zeros({part}, options);
    square_ = at::zeros({part}, options);
  }
  const MemoryScope scope(MemoryKind::kGradients);
  if (options_.sharding_stage >= 2) owned_ = at::zeros({part}, options);
  if (options_.sharding_stage < 2) gradient_ = at::zeros({padded_}, options);
}

void Flat::initialise() {
  for (const Parameter& p : parameters_) {
    view(whole_, p).copy_(initial_value(p, options_.seed, options_.dtype));
  }
}

at::Tensor Flat::view(const at::Tensor& flat, const Parameter& p) const {
  return flat.narrow(0, p.offset, p.numel()).view(p.shape());
}

at::Tensor Flat::value(std::size_t index) const {
  EXPECTS(whole_.defined());
  return view(whole_, parameters_[index]);
}

at::Tensor Flat::fused(std::size_t first, std::int64_t rows, std::int64_t columns) const {
  EXPECTS(whole_.defined());
  return whole_.narrow(0, parameters_[first].offset, rows * columns).view({rows, columns});
}

void Flat::ensure_gradient() {
  if (gradient_.defined()) return;
  const MemoryScope scope(MemoryKind::kGradients);
  gradient_ = at::zeros({padded_}, main_.options());
}

at::Tensor Flat::gradient(std::size_t index) {
  ensure_gradient();
  return view(gradient_, parameters_[index]);
}

at::Tensor Flat::fused_gradient(std::size_t first, std::int64_t rows, std::int64_t columns) {
  ensure_gradient();
  return gradient_.narrow(0, parameters_[first].offset, rows * columns).view({rows, columns});
}

void Flat::start_gather() {
  if (whole_.defined()) return;
  const MemoryScope scope(MemoryKind::kParameters);
  whole_ = at::empty({padded_}, main_.options());
  gather_ = shared_.all_gather(whole_, main_);
}

void Flat::need() {
  start_gather();
  gather_.wait();
}

void Flat::release() {
  if (options_.sharding_stage < 3 || shared_.size() == 1) return;
  gather_.wait();
  whole_ = at::Tensor();
}

void Flat::sum_partials() {
  if (partial_ > 0) tensor_.all_reduce(gradient_.narrow(0, 0, partial_)).wait();
}

void Flat::microbatch_done(bool last) {
  const bool each = options_.sharding_stage >= 2;
  if (!each && !last) return;
  ensure_gradient();
  sum_partials();
  if (options_.sharding_stage == 0) {
    reduce_ = shared_.all_reduce(gradient_);
    return;
  }
  finish_gradients();  // of the microbatch before
  const MemoryScope scope(MemoryKind::kBuffers);
  arriving_ = at::empty({padded_ / shared_.size()}, main_.options());
  reduce_ = shared_.reduce_scatter(arriving_, gradient_);
  if (each) gradient_ = at::Tensor();
}

void Flat::finish_gradients() {
  reduce_.wait();
  if (!arriving_.defined()) return;
  if (options_.sharding_stage == 1) {
    owned_ = arriving_;
  } else {
    owned_.add_(arriving_);
  }
  arriving_ = at::Tensor();
}

at::Tensor Flat::owned_gradient() const {
  return options_.sharding_stage == 0 ? gradient_ : owned_;
}

std::int64_t Flat::owned_begin() const {
  return options_.sharding_stage == 0 ? 0 : shared_.rank() * (padded_ / shared_.size());
}

bool Flat::owner() const { return options_.sharding_stage >= 1 || shared_.rank() == 0; }

void Flat::step(const AdamOptions& adam, int number) {
  // In pieces, so that the temporary is small and stays in a cache.
  constexpr std::int64_t kPiece = 1 << 20;
  const at::Tensor gradients = owned_gradient();
  const double correction1 = 1 - std::pow(adam.beta1, number);
  const double correction2 = 1 - std::pow(adam.beta2, number);
  const MemoryScope scope(MemoryKind::kWorking);
  for (std::int64_t first = 0; first < gradients.numel(); first += kPiece) {
    const std::int64_t size = std::min(kPiece, gradients.numel() - first);
    const auto piece = [&](const at::Tensor& t) { return t.narrow(0, first, size); };
    const at::Tensor g = piece(gradients), mean = piece(mean_), square = piece(square_);
    mean.mul_(adam.beta1).add_(g, 1 - adam.beta1);
    square.mul_(adam.beta2).addcmul_(g, g, 1 - adam.beta2);
    at::Tensor denominator = square.sqrt();
    denominator.div_(std::sqrt(correction2)).add_(adam.epsilon);
    piece(main_).addcdiv_(mean, denominator, -adam.learning_rate / correction1);
  }
}

void Flat::start_parameter_gather() {
  if (options_.sharding_stage == 0 || options_.sharding_stage == 3 || shared_.size() == 1) return;
  // Into the buffer that holds this rank's part too: Gloo reads its input before it writes there.
  gather_ = shared_.all_gather(whole_, main_);
}

void Flat::clear_gradients() {
  if (gradient_.defined()) gradient_.zero_();
  if (options_.sharding_stage >= 2) owned_.zero_();
}

}  // namespace towtank
