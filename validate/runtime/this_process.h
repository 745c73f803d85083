// SPDX-License-Identifier: Apache-2.0
#pragma once
/// What a rank asks of the system that it runs on.
#include <string>
#include <string_view>

namespace towtank {

/// Ends this process when `parent` ends: a rank is no orphan. Nothing if it is not the parent.
void end_with_parent(int parent);
/// Keeps this process on one core.
void stay_on_core(int core);
/// One thread for torch and for OpenBLAS, which does not obey torch.
void use_one_thread();
[[nodiscard]] std::string host_name();
/// Whether the text of an exception of Gloo says that a connection broke.
[[nodiscard]] bool is_lost_peer(std::string_view text);

}  // namespace towtank
