// SPDX-License-Identifier: Apache-2.0
#pragma once
/// Runs the steps of one rank: the actions of its row of the PipelineSchedule, in that order and no
/// other. Everything that a step exchanges follows from the plan, so ranks need no agreement.
///
///   forward      layer by layer, each its own piece of graph, so that backward, recomputation,
///                gathering and reduction happen at a layer
///   backward     the same, last layer first; a layer's reduction starts when its last microbatch
///                is done, and runs beside what follows
///   messages     sent when made; received messages are asked for two actions ahead
///   recompute    of a stage's layers the first recompute_full are run again whole, the next
///                recompute_selective run their attention core again
///
/// Data are uniform tokens from the seed; sample i of a step is the same for every plan.
#include <deque>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "placement/plan.h"
#include "validate/run/gradient_file.h"
#include "validate/runtime/layers.h"

namespace towtank {

struct TrainOptions {
  int global_batch = 1;
  std::uint64_t seed = 1;
  AdamOptions adam;
  at::ScalarType dtype = at::kFloat;
};

class Trainer {
 public:
  /// Pre: plan.stages is expanded; the plan passed check_plan.
  Trainer(Rendezvous& rendezvous, const Plan& plan, ModelShape shape, const TrainOptions& options,
          Recorder& recorder);
  ~Trainer();
  Trainer(const Trainer&) = delete;
  Trainer& operator=(const Trainer&) = delete;

  /// One optimizer step, numbered from 1. Returns this rank's share of the loss: the sum over
  /// the data ranks of one tensor rank of the last stage is the step's. Zero on other stages.
  double step(int number);
  /// The reduced gradients of the last step that this rank owns.
  [[nodiscard]] std::vector<GradientPiece> gradients() const;

 private:
  struct Stage;
  struct Live;
  using Key = std::pair<int, int>;  ///< stage, microbatch

  void make_stages();
  void run(const Action& action);
  void forward(Stage& stage, int microbatch);
  void backward(Stage& stage, int microbatch, bool defer_weights);
  void weight_gradients(Stage& stage, int microbatch);
  [[nodiscard]] at::Tensor block_forward(Stage& stage, std::size_t block, Live& live, at::Tensor x);
  [[nodiscard]] at::Tensor block_backward(Stage& stage, std::size_t block, Live& live,
                                          const at::Tensor& gradient);
  void post_receives(std::size_t next);
  [[nodiscard]] at::Tensor incoming(int stage, int microbatch, bool forward);
  void outgoing(int stage, int microbatch, bool forward, const at::Tensor& x);
  void optimize(int number);
  [[nodiscard]] std::pair<at::Tensor, at::Tensor> batch(int microbatch) const;
  [[nodiscard]] std::vector<Flat*> flats() const;

  const Plan plan_;
  const TrainOptions options_;
  Recorder& recorder_;
  RankCoordinates place_{};
  int rank_ = 0;
  RankGroups groups_;
  LayerWorld world_;
  std::unique_ptr<Table> table_, head_table_;
  std::vector<std::unique_ptr<Stage>> stages_;
  PipelineSchedule schedule_;
  std::map<Key, Live> live_;
  std::map<int, std::pair<at::Tensor, Pending>> expected_;  ///< by tag
  std::map<int, at::Tensor> local_;  ///< messages between stages of this rank, by tag
  double loss_ = 0;
  int step_ = 0;
};

}  // namespace towtank
