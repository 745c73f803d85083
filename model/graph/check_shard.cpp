// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <numeric>

#include "core/text.h"
#include "model/graph/shard.h"

namespace towtank {
namespace {

constexpr std::int64_t kLongestList = 12;  ///< divisors shown in a message

std::string list_text(const std::vector<std::int64_t>& values) {
  std::vector<std::string> texts;
  const auto count = static_cast<std::int64_t>(values.size());
  for (std::int64_t i = 0; i < count; ++i) {
    if (count > kLongestList && i == kLongestList - 1) {
      texts.emplace_back("...");
      texts.push_back(std::to_string(values.back()));
      break;
    }
    texts.push_back(std::to_string(values[static_cast<std::size_t>(i)]));
  }
  return join(texts, ", ");
}

std::vector<std::int64_t> divisors(std::int64_t n) {
  std::vector<std::int64_t> small;
  std::vector<std::int64_t> large;
  for (std::int64_t d = 1; d * d <= n; ++d) {
    if (n % d != 0) continue;
    small.push_back(d);
    if (d * d != n) large.push_back(n / d);
  }
  small.insert(small.end(), large.rbegin(), large.rend());
  return small;
}

/// "28 heads do not divide by tensor = 8 (valid: 1, 2, 4, 7, 14, 28)"
std::string not_divided(std::int64_t size, const std::string& what, const std::string& degree,
                        int value, const std::vector<std::int64_t>& valid) {
  return std::to_string(size) + " " + what + " do not divide by " + degree + " = " +
         std::to_string(value) + " (valid: " + list_text(valid) + ")";
}

class Checker {
 public:
  Checker(const LayerKind& kind, const ShardDegrees& degrees, const FrameworkRules& rules)
      : kind_(kind), d_(degrees), rules_(rules) {}

  std::vector<std::string> run() {
    check_tensor();
    check_kv_heads();
    check_context();
    check_sequence();
    check_experts();
    return std::move(reasons_);
  }

 private:
  void check_tensor() {
    if (!kind_.limits.tensor && d_.tensor > 1) {
      reasons_.push_back("layer " + kind_.name +
                         " has no sharding over tensor ranks (valid: " + "tensor = 1)");
      return;
    }
    for (const auto& [what, size] : kind_.limits.tensor_divides) {
      if (size % d_.tensor != 0) {
        reasons_.push_back(not_divided(size, what, "tensor", d_.tensor, divisors(size)));
      }
    }
  }

  void check_kv_heads() {
    const std::int64_t heads = kind_.limits.kv_heads;
    if (heads <= 0 || d_.tensor <= 1) return;
    const bool divides = heads % d_.tensor == 0;
    const bool replicates = rules_.kv_replication.value && d_.tensor % heads == 0;
    if (divides || replicates) return;
    std::string reason =
        not_divided(heads, "key-value heads", "tensor", d_.tensor, divisors(heads));
    if (rules_.kv_replication.value) {
      reason.insert(reason.size() - 1, ", or a multiple of " + std::to_string(heads));
    }
    reasons_.push_back(std::move(reason));
  }

  void check_context() {
    if (d_.context <= 1) return;
    if (!kind_.limits.context) {
      reasons_.push_back("layer " + kind_.name +
                         " has no sharding over context ranks (valid: " + "context = 1)");
      return;
    }
    for (const auto& [what, size] : kind_.limits.context_divides) {
      if (size % d_.context != 0) {
        reasons_.push_back(not_divided(size, what, "context", d_.context, divisors(size)));
      }
    }
    // Head-tail pairing gives a rank of a causal ring two pieces of the sequence.
    const int pieces = causal() ? 2 : 1;
    const int tokens = least_tokens();
    if (tokens > 0 && tokens % (pieces * d_.context) != 0) {
      const std::string unit = pieces == 2 ? "2 * context" : "context";
      reasons_.push_back(std::to_string(tokens) + " tokens do not divide by " + unit + " = " +
                         std::to_string(pieces * d_.context) + " (valid: context = " +
                         list_text(divisors(std::max(1, tokens / pieces))) + ")");
    }
  }

  void check_sequence() {
    if (!d_.sequence_parallel || d_.tensor <= 1) return;
    const int tokens = least_tokens();
    const int ranks = d_.tensor * d_.context;
    if (tokens > 0 && tokens % ranks != 0) {
      reasons_.push_back(std::to_string(tokens) +
                         " tokens do not divide by tensor * context = " + std::to_string(ranks) +
                         " (sequence parallelism; valid: " + list_text(divisors(tokens)) + ")");
    }
  }

  void check_experts() {
    const std::int64_t experts = kind_.limits.experts;
    if (experts <= 0) return;
    if (experts % d_.expert != 0) {
      reasons_.push_back(not_divided(experts, "experts", "expert", d_.expert, divisors(experts)));
    }
    if (d_.tensor % d_.expert_tensor != 0) {
      reasons_.push_back(not_divided(d_.tensor, "tensor ranks", "expert_tensor", d_.expert_tensor,
                                     divisors(d_.tensor)));
    }
    if (const std::int64_t width = expert_width(); width % d_.expert_tensor != 0) {
      reasons_.push_back(not_divided(width, "columns of an expert", "expert_tensor",
                                     d_.expert_tensor, divisors(width)));
    }
    if (d_.expert_tensor < d_.tensor && !d_.sequence_parallel) {
      reasons_.push_back("experts on tensor = " + std::to_string(d_.tensor) +
                         " ranks need sequence parallelism (or expert_tensor = " +
                         std::to_string(d_.tensor) + ")");
    }
  }

  [[nodiscard]] bool causal() const {
    return std::any_of(kind_.ops.begin(), kind_.ops.end(), [](const Op& op) { return op.causal; });
  }
  /// Greatest common divisor of the sequence lengths; 0 without attention.
  [[nodiscard]] int least_tokens() const {
    int tokens = 0;
    for (const Op& op : kind_.ops) {
      if (op.kind != OpKind::kAttention) continue;
      tokens = std::gcd(tokens, std::gcd(op.query_length, op.key_length));
    }
    return tokens;
  }
  [[nodiscard]] std::int64_t expert_width() const {
    std::int64_t width = 0;
    for (const Op& op : kind_.ops) {
      if (op.expert && op.kind == OpKind::kMatmul && op.split == Split::kRow) {
        width = std::gcd(width, op.inner);
      }
    }
    return width;
  }

  const LayerKind& kind_;
  const ShardDegrees& d_;
  const FrameworkRules& rules_;
  std::vector<std::string> reasons_;
};

}  // namespace

std::vector<std::string> check_shard(const LayerKind& kind, const ShardDegrees& degrees,
                                     const FrameworkRules& rules) {
  return Checker(kind, degrees, rules).run();
}

}  // namespace towtank
