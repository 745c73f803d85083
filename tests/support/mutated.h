// SPDX-License-Identifier: Apache-2.0
#pragma once
/// Texts with a few bytes changed, cut, doubled or swapped: what readers of anybody's files meet.
/// Seeded, so that each run tries the same ones.
#include <string>
#include <string_view>

#include "core/rng.h"

namespace towtank::testing {

[[nodiscard]] inline std::string mutated(std::string text, Rng& rng) {
  const auto below = [&](std::size_t n) { return static_cast<std::size_t>(rng.next() % n); };
  const auto place = [&] { return below(text.size()); };
  const std::size_t changes = 1 + below(6);
  for (std::size_t i = 0; i < changes && !text.empty(); ++i) {
    switch (below(7)) {
      case 0:  // any byte
        text[place()] = static_cast<char>(below(256));
        break;
      case 1: {  // a byte that means something
        constexpr std::string_view kTelling = "{}[]\",:\\0123456789-.e\n";
        text[place()] = kTelling[below(kTelling.size())];
        break;
      }
      case 2:  // cut off
        if (below(8) == 0) text.resize(place());
        break;
      case 3: {  // a piece left out
        const std::size_t at = place();
        text.erase(at, 1 + below(40));
        break;
      }
      case 4: {  // a piece twice
        const std::size_t at = place();
        text.insert(at, text.substr(at, 1 + below(400)));
        break;
      }
      case 5: {  // a long number
        text.insert(place(), "9999999999999999999");
        break;
      }
      default: {  // a piece moved
        const std::string piece = text.substr(place(), 1 + below(200));
        text.insert(place(), piece);
        break;
      }
    }
  }
  return text;
}

}  // namespace towtank::testing
