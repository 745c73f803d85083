// SPDX-License-Identifier: Apache-2.0
#include "validate/case.h"

namespace towtank {

std::string set_of_id(std::string_view id) { return std::string(id.substr(0, id.rfind('-'))); }

std::string Case::set() const { return set_of_id(id); }

}  // namespace towtank
