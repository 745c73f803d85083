// SPDX-License-Identifier: Apache-2.0
#pragma once
/// Any bytes may be read as a file: a reader answers with a value or an InputError. Anything else
/// (a crash, a contract, another exception) is a finding.
#include <cstddef>
#include <cstdint>
#include <string>

#include "core/input_error.h"

namespace towtank::fuzzing {

template <class Read>
int read_any(const std::uint8_t* data, std::size_t size, Read&& read) {
  try {
    read(std::string(reinterpret_cast<const char*>(data), size));
  } catch (const InputError&) {
    return 0;
  }
  return 0;
}

}  // namespace towtank::fuzzing
