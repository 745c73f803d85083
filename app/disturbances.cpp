// SPDX-License-Identifier: Apache-2.0
#include "app/disturbances.h"

#include <charconv>
#include <cmath>
#include <optional>

#include "app/arguments.h"
#include "core/text.h"
#include "core/unit_text.h"

namespace towtank {
namespace {

/// In (0, most].
std::optional<double> factor_of(std::string_view text, double most) {
  double value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc{} || end != text.data() + text.size()) return std::nullopt;
  if (!(value > 0 && value <= most)) return std::nullopt;
  return value;
}

/// Up to the next semicolon, without blanks around it; what is left stays in `text`.
std::string_view next_of(std::string_view& text) {
  std::string_view one = text.substr(0, text.find(';'));
  text.remove_prefix(std::min(text.size(), one.size() + 1));
  while (one.starts_with(' ')) one.remove_prefix(1);
  while (one.ends_with(' ')) one.remove_suffix(1);
  return one;
}

bool take_suffix(std::string_view& text, std::string_view suffix) {
  if (!text.ends_with(suffix)) return false;
  text.remove_suffix(suffix.size());
  return true;
}

/// "40%" or "10 GB/s"; false if it is neither.
bool read_amount(std::string_view text, Background& out) {
  if (text.ends_with('%')) {
    text.remove_suffix(1);
    while (text.ends_with(' ')) text.remove_suffix(1);
    constexpr double kPercent = 100;
    const auto share = factor_of(text, kPercent);
    if (share) out.share = *share / kPercent;
    return share.has_value();
  }
  const auto rate = parse_bytes_per_second(text);
  if (const auto* value = std::get_if<BytesPerSecond>(&rate)) out.rate = *value;
  return out.rate.value > 0;
}

/// One of --background; false if it is none.
bool read_background(std::string_view text, Background& out) {
  constexpr std::string_view kBurst = "burst=";
  const std::size_t equals = text.find('=');
  if (equals == std::string_view::npos) return false;
  std::string_view links = text.substr(0, equals);
  if (take_suffix(links, " up")) out.up = true;
  if (take_suffix(links, " down")) out.up = false;
  out.links = std::string(links);
  std::string_view amount = text.substr(equals + 1);
  if (const std::size_t comma = amount.find(','); comma != std::string_view::npos) {
    const std::string_view burst = amount.substr(comma + 1);
    if (!burst.starts_with(kBurst)) return false;
    const auto bytes = parse_bytes(burst.substr(kBurst.size()));
    if (const auto* value = std::get_if<Bytes>(&bytes)) out.burst = *value;
    if (out.burst.value <= 0) return false;
    amount = amount.substr(0, comma);
  }
  return !links.empty() && read_amount(amount, out);
}

}  // namespace

std::vector<Straggler> read_stragglers(std::string_view text, int devices, Faults& faults) {
  constexpr double kMostSlowdown = 1000;
  std::vector<Straggler> out;
  const auto fault = [&](std::string_view what) {
    faults.add({"--straggler", in_quotes(what) + " is not a slow rank", "",
                "Write rank=12,slowdown=1.3; several behind semicolons"});
  };
  while (!text.empty()) {
    const std::string_view one = next_of(text);
    const std::size_t comma = one.find(',');
    constexpr std::string_view kRank = "rank=", kSlowdown = "slowdown=";
    if (comma == std::string_view::npos || !one.starts_with(kRank) ||
        !one.substr(comma + 1).starts_with(kSlowdown)) {
      fault(one);
      continue;
    }
    const auto rank = whole_number(one.substr(kRank.size(), comma - kRank.size()), "--straggler", 0,
                                   devices - 1, faults);
    const auto slowdown = factor_of(one.substr(comma + 1 + kSlowdown.size()), kMostSlowdown);
    if (!slowdown) fault(one);
    if (rank && slowdown) out.push_back({*rank, *slowdown});
  }
  return out;
}

std::vector<Background> read_backgrounds(std::string_view text, Faults& faults) {
  std::vector<Background> out;
  while (!text.empty()) {
    const std::string_view one = next_of(text);
    Background b;
    if (read_background(one, b)) {
      out.push_back(std::move(b));
    } else {
      faults.add(
          {"--background", in_quotes(one) + " is no traffic on links", "",
           "Write leaf=40%, or node 3=10 GB/s, or node 3 up=40%,burst=64 MiB; several behind "
           "semicolons"});
    }
  }
  return out;
}

}  // namespace towtank
