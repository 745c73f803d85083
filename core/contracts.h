// SPDX-License-Identifier: Apache-2.0
#pragma once
/// Contracts between programmers: a broken one is a defect in towtank, never bad input (that is
/// an InputError) and never an expected outcome (that is a value).
#include <stdexcept>
#include <string>

namespace towtank {

class ContractViolation : public std::logic_error {
 public:
  using std::logic_error::logic_error;
};

[[noreturn]] void contract_violated(const char* kind, const char* condition, const char* file,
                                    int line);

}  // namespace towtank

/// Precondition: what the caller promised.
#define EXPECTS(cond)            \
  ((cond) ? static_cast<void>(0) \
          : ::towtank::contract_violated("EXPECTS", #cond, __FILE__, __LINE__))
/// Postcondition: what the callee promises.
#define ENSURES(cond)            \
  ((cond) ? static_cast<void>(0) \
          : ::towtank::contract_violated("ENSURES", #cond, __FILE__, __LINE__))
