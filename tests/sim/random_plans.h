// SPDX-License-Identifier: Apache-2.0
#pragma once
/// Random plans that check_plan accepts: models, machines, frameworks, degrees, schedules, sharding
/// stages, uneven stages and recomputation, the same for the same seed.
#include <algorithm>
#include <fstream>
#include <memory>
#include <sstream>
#include <string>
#include <vector>

#include "core/rng.h"
#include "placement/detail/candidate.h"
#include "placement/validity.h"
#include "tests/support/planning.h"

namespace towtank::testing::sim {

inline std::string example_model(const std::string& name) {
  std::ifstream in(std::string(TOWTANK_SOURCE_DIR) + "/examples/models/" + name + "/config.json");
  std::ostringstream text;
  text << in.rdbuf();
  return text.str();
}

struct Asked {
  std::shared_ptr<Question> question;
  Plan plan;
};

class RandomPlans {
 public:
  explicit RandomPlans(std::uint64_t seed) : rng_(seed) {}

  [[nodiscard]] Asked next() {
    while (true) {
      const auto question = question_of_plan();
      if (auto plan = plan_of(*question)) return {question, *plan};
    }
  }

 private:
  std::size_t pick(std::size_t n) {
    return static_cast<std::size_t>(rng_.integer(0, static_cast<std::int64_t>(n) - 1));
  }
  template <class T>
  const T& pick_of(const std::vector<T>& items) {
    return items[pick(items.size())];
  }

  std::shared_ptr<Question> question_of_plan() {
    static const std::vector<std::string> models{gpt2_config(1024, 13, 16, 50257, 2048),
                                                 llama_config(4096, 32, 32, 8, 14336, 128256),
                                                 example_model("mixtral-8x7b")};
    static const std::vector<std::string> machines{"dgx-h100", "dgx-a100-80g"};
    const int devices = 1 << rng_.integer(0, 6);
    const int batch = devices << rng_.integer(0, 3);
    return std::make_shared<Question>(pick_of(models), pick_of(machines), devices, 1024, batch);
  }

  std::optional<Plan> plan_of(const Question& question) {
    const PlanProblem& problem = question.problem();
    const auto framework = static_cast<Framework>(pick(kFrameworkCount));
    const std::vector<Node> nodes = nodes_of(problem, framework, {});
    if (nodes.empty()) return std::nullopt;
    const Node& node = pick_of(nodes);
    std::vector<Shape> shapes;
    shapes_of(problem, framework, {}, node, shapes);
    if (shapes.empty()) return std::nullopt;
    const detail::Mesh mesh(problem, node, framework);
    detail::Layout layout = detail::LayoutBuilder(mesh).build(pick_of(shapes));
    make_uneven(layout);
    Plan plan = detail::plan_from(mesh, layout);
    if (!check_plan(plan, question.graph(), question.workload(), problem.view).empty()) {
      return std::nullopt;
    }
    return plan;
  }

  /// Moves single layers between neighbours, and recomputes some.
  void make_uneven(detail::Layout& layout) {
    for (std::size_t s = 0; s + 1 < layout.stages.size(); ++s) {
      if (rng_.uniform() < 0.6) continue;
      detail::StageRange& a = layout.stages[s];
      detail::StageRange& b = layout.stages[s + 1];
      if (b.last - b.first > 1) ++a.last, ++b.first;
    }
    for (detail::StageRange& s : layout.stages) {
      if (rng_.uniform() < 0.5) continue;
      s.full = static_cast<int>(rng_.integer(0, s.last - s.first));
      s.selective = s.last - s.first - s.full;
    }
  }

  Rng rng_;
};

}  // namespace towtank::testing::sim
