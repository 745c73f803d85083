// SPDX-License-Identifier: Apache-2.0
#pragma once
/// The network to train, as planning sees it: a few kinds of layers and the order in which they
/// run. Everything is counted for ONE SAMPLE (a sequence, an image) of the whole, unsharded model;
/// shard() makes it local. Sequence length enters in the importer only.
///
/// A layer is what a pipeline may cut between and recomputation may repeat: a transformer block, a
/// ResNet block. It holds ops in order and the collectives that its sharding implies. Branching
/// models are directed acyclic graphs of layers, put into one deterministic topological order; a
/// pipeline stage is an interval of it, and what crosses a cut is every tensor that is still
/// needed.
///
///   split        parameters of the op             work of the op
///   kReplicate   copied on every tensor rank      all of it on every tensor rank
///   kSequence    copied                           / t with sequence parallelism, else all of it
///   kColumn      / t (output features, heads)     / t
///   kRow         / t (inner dimension)            / t
///   with expert  / (e * tau), kReplicate / e      tokens of its own experts; width / tau
/// Context parallelism (c) divides the rows of every op and every saved tensor. An embedding's
/// table is split over its rows (kRow), yet every rank writes the whole output. A tied head has no
/// parameters of its own: the last stage's copy of the table is tied_parameters.
#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "core/id.h"
#include "core/units.h"
#include "profiler/collective.h"
#include "profiler/op_signature.h"

namespace towtank {

using LayerKindId = Id<struct LayerKindTag>;
using LayerId = Id<struct LayerTag>;  ///< position in topological order

enum class Split { kReplicate, kSequence, kColumn, kRow };
inline constexpr std::array<std::string_view, 4> kSplitNames{"replicate", "sequence", "column",
                                                             "row"};

/// What a recompute option can drop and rerun. Full recomputation (everything but the layer's
/// input) is a property of the layer, not of a group.
///
///   kNorm           norm outputs
///   kGatedProduct   output of the activation function (gated: of the product), MLP and experts
///   kMlp            output of the first MLP product; with kGatedProduct the whole MLP
///   kAttentionCore  scores, softmax, masks; with a fused core its output and log-sum-exp
///   kMlaUp          Q, K and V rebuilt from the latents
///   kExperts        outputs of both expert products; the dispatched tokens stay
enum class RecomputeGroup { kNone, kNorm, kGatedProduct, kMlp, kAttentionCore, kMlaUp, kExperts };
inline constexpr std::size_t kRecomputeGroupCount = 7;
inline constexpr std::array<std::string_view, kRecomputeGroupCount> kRecomputeGroupNames{
    "none", "norm", "activation", "mlp", "attention_core", "mla_up", "experts"};

/// A tensor kept from forward for backward.
struct SavedTensor {
  enum class Element { kCompute, kFloat, kByte };  ///< compute dtype, fp32, one-byte mask
  enum class When { kAlways, kFused, kUnfused, kDropout, kUnfusedDropout };  ///< see FrameworkRules
  double elements = 0;                                                       ///< per sample
  Element element = Element::kCompute;
  Split split = Split::kColumn;
  bool key_value = false;    ///< K and V: divided by min(t, kv heads)
  bool expert = false;       ///< counts routed tokens: scales with the expert load factor
  bool layer_input = false;  ///< what full recomputation keeps
  bool logits = false;       ///< reported as logits; alive for one microbatch on the last stage
  When when = When::kAlways;
  RecomputeGroup group = RecomputeGroup::kNone;
  friend bool operator==(const SavedTensor&, const SavedTensor&) = default;
};

/// One operator for one sample.
struct Op {
  std::string name;  ///< "qkv", "attention", "fc1"; unique in its layer kind
  OpKind kind = OpKind::kMatmul;
  Split split = Split::kReplicate;
  bool expert = false;        ///< weights belong to routed experts
  bool vocabulary = false;    ///< columns (or table rows) are the vocabulary: padded by framework
  bool dropout_only = false;  ///< runs only where the framework keeps dropout
  RecomputeGroup group = RecomputeGroup::kNone;  ///< rerun when that group is recomputed

  // kMatmul, and kConvolution as the product that it is computed by: rows x inner x columns.
  double rows = 0;           ///< m per sample over all groups; routed experts: tokens * top-k
  std::int64_t inner = 0;    ///< k
  std::int64_t columns = 0;  ///< n
  std::int64_t groups = 1;   ///< weight matrices; each has rows / groups (experts, conv groups)
  std::int64_t key_value_columns = 0;  ///< of the columns: K and V, replicated where t > kv heads

  // kAttention
  int heads = 0, kv_heads = 0;
  int query_length = 0, key_length = 0;
  int head_width = 0, value_width = 0;
  bool causal = false;
  std::optional<int> window;  ///< causal sliding window; nullopt = full

  // The others: elements moved (reads plus writes) per sample, forward and backward. kConvolution:
  // elements of input plus output, since the unfolded matrix never leaves the chip.
  double moved_elements = 0;
  double moved_elements_backward = 0;
  double flop = 0;  ///< per sample forward; matmul and attention derive theirs

  double parameters = 0;             ///< divided as `split` and `expert` say
  double replicated_parameters = 0;  ///< e.g. biases of row-split products; never divided by t
  std::vector<SavedTensor> saved;
  friend bool operator==(const Op&, const Op&) = default;
};

/// The parallel dimension whose process group runs a collective.
enum class Axis { kTensor, kContext, kExpert, kExpertTensor, kPipeline, kData };
inline constexpr std::size_t kAxisCount = 6;

/// A collective inside a layer, for one sample. Payload as nccl-tests counts it: the whole buffer
/// of an all-reduce, the gathered buffer of an all-gather or reduce-scatter, a rank's buffer of an
/// all-to-all.
struct LayerCollective {
  std::string name;  ///< "attention output"
  Axis axis = Axis::kTensor;
  Collective forward = Collective::kAllReduce;
  Collective backward = Collective::kAllReduce;
  int forward_count = 0, backward_count = 0;
  /// What it becomes under sequence parallelism; nullopt = the same. Counts are per direction.
  struct WithSequenceParallel {
    Collective forward = Collective::kAllGather;
    Collective backward = Collective::kReduceScatter;
    int forward_count = 1, backward_count = 1;
    int hidden_backward_count = 0;  ///< repeated all-gathers for weight gradients, hideable
    friend bool operator==(const WithSequenceParallel&, const WithSequenceParallel&) = default;
  };
  std::optional<WithSequenceParallel> with_sequence_parallel;
  /// Payload per sample of the unsharded layer. Divided by c, but on the context axis; on the
  /// expert axes also by t under sequence parallelism, and scaled with the expert load.
  double elements = 0;
  bool divided_by_tensor = false;    ///< divided by t
  bool divided_by_kv_heads = false;  ///< divided by min(t, kv heads)
  bool overlaps_attention = false;   ///< context ring: hidden behind the attention core
  friend bool operator==(const LayerCollective&, const LayerCollective&) = default;
};

/// Why a degree is or is not possible for a layer kind.
struct ShardLimits {
  bool tensor = true;   ///< false: no sharding over t is known, so t = 1
  bool context = true;  ///< false: c = 1
  std::vector<std::pair<std::string, std::int64_t>>
      tensor_divides;         ///< t must divide: {"heads", 64}
  std::int64_t kv_heads = 0;  ///< 0: none; else kv_heads % t = 0 or t % kv_heads = 0
  /// c must divide: {"rows of the image", 512}; sequences follow from the attention ops.
  std::vector<std::pair<std::string, std::int64_t>> context_divides;
  std::int64_t experts = 0;  ///< 0: dense; else e must divide it
  friend bool operator==(const ShardLimits&, const ShardLimits&) = default;
};

struct LayerKind {
  std::string name;  ///< "decoder", "moe", "embedding", "head"
  std::vector<Op> ops;
  std::vector<LayerCollective> collectives;
  ShardLimits limits;
  friend bool operator==(const LayerKind&, const LayerKind&) = default;
};

/// Where a layer must run.
enum class Pin { kFree, kFirst, kLast };

struct Layer {
  std::string name;
  LayerKindId kind;
  Pin pin = Pin::kFree;       ///< pinned layers are not counted by a plan's layer ranges
  bool beyond_total = false;  ///< in memory and time, not in the total: multi-token prediction
  friend bool operator==(const Layer&, const Layer&) = default;
};

struct Edge {
  LayerId from, to;
  double elements = 0;  ///< per sample, compute dtype
  friend bool operator==(const Edge&, const Edge&) = default;
};

struct ModelGraph {
  std::string name;
  std::string family;     ///< model_type, or "graph"
  int sample_tokens = 0;  ///< 0 when a sample is not a sequence
  std::vector<std::int64_t> sample_shape;
  IdVector<LayerKindId, LayerKind> kinds;
  IdVector<LayerId, Layer>
      layers;  ///< topological order; pinned-first ones first, pinned-last last
  std::vector<Edge> edges;
  bool tied_embedding = false;           ///< first and last stage hold the same table
  double tied_parameters = 0;            ///< its size
  double mtp_parameters = 0;             ///< of layers beyond the total: in memory and time only
  std::vector<std::string> assumptions;  ///< what the importer took as the family's default

  /// Exact total, each tied tensor once, without multi-token-prediction layers.
  [[nodiscard]] double total_parameters() const;
  /// Parameters that one token uses: top-k of the routed experts.
  [[nodiscard]] double active_parameters() const;
  /// Layers a plan's ranges count: those that are not pinned.
  [[nodiscard]] int free_layers() const;
  /// Elements per sample that cross the cut before each free layer (index 0 is the cut after the
  /// pinned-first layers), each producer's tensor once.
  [[nodiscard]] std::vector<double> cut_elements() const;
};

/// Keys that one query meets, on average: all without a causal mask or without a fused core (the
/// whole score matrix is computed), half of them under a mask, fewer under a window.
[[nodiscard]] double attention_keys_run(const Op&, bool fused);
/// What an op computes for one unsharded sample.
[[nodiscard]] Flop forward_flop(const Op&, bool fused);

/// Forward FLOP of one sample. `counted` is the published MFU convention: attention as 4 s q even
/// where a causal mask halves it; `run` is what a fused causal kernel computes.
struct ForwardWork {
  Flop matmul;
  Flop attention_counted;
  Flop attention_run;
};
[[nodiscard]] ForwardWork forward_work(const ModelGraph&);
[[nodiscard]] ForwardWork forward_work(const LayerKind&);

}  // namespace towtank
