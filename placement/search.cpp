// SPDX-License-Identifier: Apache-2.0
#include "placement/search.h"

#include <algorithm>
#include <cmath>
#include <tuple>

#include "core/contracts.h"
#include "core/unit_text.h"
#include "placement/detail/candidate.h"

namespace towtank {
namespace {

using detail::Layout;
using detail::Mesh;
using detail::StepModel;

/// A costed plan, small enough to keep many.
struct Kept {
  Seconds time;
  Plan plan;
};

/// Fewest stages, smallest t, p, c, e, largest b, lowest sharding stage.
auto tie_key(const Plan& p) {
  return std::tuple{p.pipeline * p.stages_per_rank,
                    p.tensor,
                    p.pipeline,
                    p.context,
                    p.expert,
                    p.expert_tensor,
                    -p.microbatch,
                    p.sharding_stage,
                    static_cast<int>(p.schedule)};
}

bool before(const Kept& a, const Kept& b) {
  if (a.time != b.time) return a.time < b.time;
  return tie_key(a.plan) < tie_key(b.plan);
}

bool same_time(Seconds a, Seconds b) {
  constexpr double kSame = 1e-9;  // beyond the rounding of sums in another order
  return std::abs(a.value - b.value) <= kSame * std::max(a.value, b.value);
}

/// The fastest plans so far, at most `size`. Of plans that take the same time only the first by
/// tie_key is kept: a list of ten ways to write one plan helps nobody.
class Best {
 public:
  explicit Best(int size) : size_(static_cast<std::size_t>(size)) {}
  /// A plan at or above this time cannot enter.
  [[nodiscard]] Seconds worst() const {
    return kept_.size() < size_ ? Seconds{1e300} : kept_.back().time;
  }
  void offer(Kept candidate) {
    for (Kept& kept : kept_) {
      if (!same_time(kept.time, candidate.time)) continue;
      if (tie_key(candidate.plan) < tie_key(kept.plan)) kept = std::move(candidate);
      return;
    }
    const auto at = std::upper_bound(kept_.begin(), kept_.end(), candidate, before);
    if (at == kept_.end() && kept_.size() >= size_) return;
    kept_.insert(at, std::move(candidate));
    if (kept_.size() > size_) kept_.pop_back();
  }
  [[nodiscard]] const std::vector<Kept>& kept() const { return kept_; }

 private:
  std::size_t size_;
  std::vector<Kept> kept_;
};

struct BoundedNode {
  Node node;
  Seconds bound;  ///< LB0
};

Seconds node_bound(const PlanProblem& problem, const Node& node, detail::WholeTimes& whole) {
  return static_cast<double>(problem.workload->global_batch) * node.tensor * node.context /
         (static_cast<double>(node.microbatch) * problem.devices()) * whole(node);
}

/// Never above the makespan, however layers are split: S / (1 - (1 - 1/M)^p) where each stage waits
/// for those before it (1F1B, GPipe), M S / p on any schedule.
Seconds split_bound(const Shape& shape, Seconds whole) {
  const double m = shape.microbatches, p = shape.pipeline;
  const bool waits =
      shape.schedule == ScheduleKind::kOneFOneB || shape.schedule == ScheduleKind::kGpipe;
  return waits && p > 1 ? whole / (1.0 - std::pow(1.0 - 1.0 / m, p)) : m / p * whole;
}

Bytes limit_of(const PlanProblem& problem, double share) {
  return {static_cast<std::int64_t>(share * static_cast<double>(problem.capacity.value))};
}

class Run {
 public:
  Run(const PlanProblem& problem, const SearchOptions& options, double memory_limit)
      : problem_(&problem),
        options_(&options),
        limit_(limit_of(problem, memory_limit)),
        best_(options.top) {}

  /// Every shape over a node; with `prune`, only those whose bound beats the worst kept.
  void visit(const Node& node, bool prune) {
    shapes_of(*problem_, options_->framework, options_->pins, node, shapes_);
    counts_.plans += static_cast<std::int64_t>(shapes_.size());
    if (shapes_.empty()) return;
    const Mesh mesh(*problem_, node, options_->framework);
    detail::LayoutBuilder builder(mesh);
    const Seconds whole = mesh.whole_time();
    for (const Shape& shape : shapes_) {
      if (prune && split_bound(shape, whole) >= best_.worst()) {
        ++counts_.pruned_by_bound;
      } else {
        cost(mesh, builder.build(shape), prune);
      }
    }
  }

  /// Counts the shapes of a node that LB0 rules out.
  void skip(const Node& node) {
    shapes_of(*problem_, options_->framework, options_->pins, node, shapes_);
    counts_.plans += static_cast<std::int64_t>(shapes_.size());
    counts_.pruned_by_bound += static_cast<std::int64_t>(shapes_.size());
  }

  [[nodiscard]] const Best& best() const { return best_; }
  [[nodiscard]] const SearchCounts& counts() const { return counts_; }

 private:
  void cost(const Mesh& mesh, Layout layout, bool prune) {
    if (prune && quick_bound(mesh, layout, scratch_) >= best_.worst()) {
      ++counts_.pruned_by_bound;
      return;
    }
    if (!solve_recompute(*problem_, mesh, options_->pins.recompute, limit_, layout)) {
      ++counts_.pruned_by_memory;
      return;
    }
    if (prune && quick_bound(mesh, layout, scratch_) >= best_.worst()) {
      ++counts_.pruned_by_bound;
      return;
    }
    ++counts_.costed;
    const Seconds time = StepModel(*problem_, mesh, layout).times().total;
    if (time <= (1 + 1e-9) * best_.worst()) best_.offer({time, plan_from(mesh, layout)});
  }

  const PlanProblem* problem_;
  const SearchOptions* options_;
  Bytes limit_;
  Best best_;
  SearchCounts counts_;
  std::vector<Shape> shapes_;
  std::vector<StageTime> scratch_;
};

RankedPlan ranked(const PlanProblem& problem, const Plan& plan) {
  return {plan, ClosedFormEvaluator(problem).evaluate(plan)};
}

/// The plan that needs least memory, everything recomputed and sharded: what comes nearest.
std::optional<NothingFits> nearest_plan(const PlanProblem& problem, const SearchOptions& options) {
  std::optional<std::pair<Bytes, Plan>> least;
  std::vector<Shape> shapes;
  for (const Node& node : nodes_of(problem, options.framework, options.pins)) {
    shapes_of(problem, options.framework, options.pins, node, shapes);
    if (shapes.empty()) continue;
    const Mesh mesh(problem, node, options.framework);
    detail::LayoutBuilder builder(mesh);
    for (const Shape& shape : shapes) {
      Layout layout = builder.build(shape);
      static_cast<void>(solve_recompute(problem, mesh, options.pins.recompute, Bytes{0}, layout));
      const Bytes total = detail::fullest_rank(problem, mesh, layout).total;
      if (!least || total < least->first) least = {total, detail::plan_from(mesh, layout)};
    }
  }
  if (!least) return std::nullopt;
  NothingFits out{ranked(problem, least->second), least->first, problem.capacity};
  return out;
}

using Search = Run (*)(const PlanProblem&, const SearchOptions&, double);

Run best_first(const PlanProblem& problem, const SearchOptions& options, double limit) {
  std::vector<BoundedNode> nodes;
  detail::WholeTimes whole(problem, options.framework);
  for (const Node& node : nodes_of(problem, options.framework, options.pins)) {
    nodes.push_back({node, node_bound(problem, node, whole)});
  }
  std::stable_sort(nodes.begin(), nodes.end(),
                   [](const BoundedNode& a, const BoundedNode& b) { return a.bound < b.bound; });
  Run run(problem, options, limit);
  for (const BoundedNode& n : nodes) {
    if (n.bound > run.best().worst()) {
      run.skip(n.node);
    } else {
      run.visit(n.node, true);
    }
  }
  return run;
}

Run exhaustive(const PlanProblem& problem, const SearchOptions& options, double limit) {
  Run run(problem, options, limit);
  for (const Node& node : nodes_of(problem, options.framework, options.pins)) {
    run.visit(node, false);
  }
  return run;
}

/// The fastest plan of a baseline's small subspace, or why there is none.
Baseline baseline(const PlanProblem& problem, const SearchOptions& options, std::string name,
                  Framework framework, int sharding_stage, Search search) {
  Baseline out{std::move(name), std::nullopt, ""};
  SearchOptions narrow = options;
  narrow.framework = framework;
  narrow.top = 1;
  narrow.pins = Pins{};
  narrow.pins.tensor = narrow.pins.pipeline = narrow.pins.context = narrow.pins.expert = 1;
  narrow.pins.sharding_stage = problem.devices() > 1 ? sharding_stage : 0;
  const Run run = search(problem, narrow, 1.0);
  if (!run.best().kept().empty()) {
    out.plan = ranked(problem, run.best().kept().front().plan);
    return out;
  }
  const int batch = problem.workload->global_batch;
  if (batch % problem.devices() != 0) {
    out.why_not = "a global batch of " + std::to_string(batch) + " has no " +
                  std::to_string(problem.devices()) + " equal parts";
    return out;
  }
  const auto nearest = nearest_plan(problem, narrow);
  out.why_not = nearest ? "out of memory by " + to_text(nearest->needed - nearest->available)
                        : "not possible with " +
                              std::string(kFrameworkNames[static_cast<std::size_t>(framework)]);
  return out;
}

SearchResult run_search(const PlanProblem& problem, const SearchOptions& options, Search search) {
  EXPECTS(problem.costs != nullptr && options.top >= 1);
  SearchResult result;
  Run run = search(problem, options, options.memory_limit);
  if (run.best().kept().empty() && options.memory_limit < 1.0 && run.counts().plans > 0) {
    run = search(problem, options, 1.0);
    result.borderline_allowed = !run.best().kept().empty();
  }
  result.counts = run.counts();
  for (const Kept& kept : run.best().kept()) result.plans.push_back(ranked(problem, kept.plan));
  if (run.counts().plans == 0) {
    result.empty_space = why_empty(problem, options.framework, options.pins);
    return result;
  }
  if (result.plans.empty()) result.nothing_fits = nearest_plan(problem, options);
  const bool shards = rules_of(options.framework).highest_sharding_stage.value >= 3;
  result.baselines.push_back(
      baseline(problem, options, "data parallel", options.framework, 0, search));
  result.baselines.push_back(baseline(problem, options, "fully sharded",
                                      shards ? options.framework : Framework::kTorchtitan, 3,
                                      search));
  return result;
}

}  // namespace

SearchResult BestFirstSearch::search(const PlanProblem& problem,
                                     const SearchOptions& options) const {
  return run_search(problem, options, best_first);
}

SearchResult ExhaustiveSearch::search(const PlanProblem& problem,
                                      const SearchOptions& options) const {
  return run_search(problem, options, exhaustive);
}

}  // namespace towtank
