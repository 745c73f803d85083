// SPDX-License-Identifier: Apache-2.0
#include "validate/runtime/parallel_ops.h"

#include <torch/csrc/autograd/autograd.h>
#include <torch/csrc/autograd/custom_function.h>

#include <memory>
#include <utility>

#include "core/contracts.h"

namespace towtank {
namespace {

using TensorFunction = std::function<at::Tensor(const at::Tensor&)>;

/// A piece whose backward is written by hand; what it keeps lives in the two functions.
struct Piece : torch::CustomClassHolder {
  TensorFunction forward, backward;
};

struct PieceNode : torch::autograd::Function<PieceNode> {
  static at::Tensor forward(torch::autograd::AutogradContext* context, const at::Tensor& x,
                            const c10::intrusive_ptr<Piece>& piece) {
    context->saved_data["piece"] = c10::IValue::make_capsule(piece);
    return piece->forward(x.detach());
  }
  static torch::autograd::variable_list backward(torch::autograd::AutogradContext* context,
                                                 torch::autograd::variable_list gradients) {
    const auto holder = context->saved_data["piece"].toCapsule();
    return {static_cast<Piece*>(holder.get())->backward(gradients[0].contiguous()), at::Tensor()};
  }
};

at::Tensor piece(const at::Tensor& x, TensorFunction forward, TensorFunction backward) {
  auto p = c10::make_intrusive<Piece>();
  p->forward = std::move(forward);
  p->backward = std::move(backward);
  return PieceNode::apply(x, p);
}

at::Tensor as_rows(const at::Tensor& x) { return x.reshape({-1, x.size(-1)}); }

at::Tensor weight_of(const LinearParameter& p) {
  return p.flat->fused(p.weight, p.rows, p.columns);
}

/// A bias may lie in several parameters as the weight does.
at::Tensor bias_of(const LinearParameter& p) { return p.flat->fused(*p.bias, 1, p.rows).view(-1); }

void add_bias_gradient(const LinearParameter& p, const at::Tensor& gradient) {
  if (p.bias) p.flat->fused_gradient(*p.bias, 1, p.rows).view(-1).add_(as_rows(gradient).sum(0));
}

void add_weight_gradient(const LinearParameter& p, const at::Tensor& gradient,
                         const at::Tensor& input, TensorContext& context) {
  auto product = [p, gradient, input] {
    p.flat->fused_gradient(p.weight, p.rows, p.columns)
        .addmm_(as_rows(gradient).t(), as_rows(input));
  };
  if (context.deferred != nullptr) {
    context.deferred->add(std::move(product));
  } else {
    product();
  }
}

struct Saved {
  at::Tensor a, b, c;
};

at::Tensor rms_norm(const at::Tensor& x, const NormParameter& p) {
  constexpr double kEpsilon = 1e-5;
  auto saved = std::make_shared<Saved>();
  return piece(
      x,
      [p, saved](const at::Tensor& in) {
        saved->a = in;
        saved->b = in.pow(2).mean(-1, true).add_(kEpsilon).rsqrt_();
        return in.mul(saved->b).mul_(p.flat->value(p.weight));
      },
      [p, saved](const at::Tensor& g) {
        const at::Tensor normal = saved->a.mul(saved->b);
        p.flat->gradient(p.weight).add_(as_rows(g.mul(normal)).sum(0));
        const at::Tensor scaled = g.mul(p.flat->value(p.weight));
        const at::Tensor mean = scaled.mul(normal).mean(-1, true);
        return scaled.sub_(normal.mul(mean)).mul_(saved->b);
      });
}

at::Tensor layer_norm(const at::Tensor& x, const NormParameter& p) {
  constexpr double kEpsilon = 1e-5;
  auto saved = std::make_shared<Saved>();
  return piece(
      x,
      [p, saved](const at::Tensor& in) {
        saved->a = in;
        auto [out, mean, rstd] = at::native_layer_norm(in, {in.size(-1)}, p.flat->value(p.weight),
                                                       p.flat->value(*p.bias), kEpsilon);
        saved->b = mean;
        saved->c = rstd;
        return out;
      },
      [p, saved](const at::Tensor& g) {
        auto [gx, gw, gb] = at::native_layer_norm_backward(
            g, saved->a, {g.size(-1)}, saved->b, saved->c, p.flat->value(p.weight),
            p.flat->value(*p.bias), {true, true, true});
        p.flat->gradient(p.weight).add_(gw);
        p.flat->gradient(*p.bias).add_(gb);
        return gx;
      });
}

}  // namespace

void WeightWork::run() {
  for (auto& product : std::exchange(products_, {})) product();
}

at::Tensor gather_tokens(const at::Tensor& x, ProcessGroup& group) {
  std::vector<std::int64_t> sizes = x.sizes().vec();
  sizes[0] *= group.size();
  at::Tensor out = at::empty(sizes, x.options());
  group.all_gather(out, x.contiguous()).wait();
  return out;
}

at::Tensor scatter_tokens(const at::Tensor& x, ProcessGroup& group) {
  std::vector<std::int64_t> sizes = x.sizes().vec();
  EXPECTS(sizes[0] % group.size() == 0);
  sizes[0] /= group.size();
  at::Tensor out = at::empty(sizes, x.options());
  group.reduce_scatter(out, x.contiguous()).wait();
  return out;
}

at::Tensor column_linear(const at::Tensor& x, const LinearParameter& p, TensorContext& context) {
  auto saved = std::make_shared<Saved>();
  return piece(
      x,
      [p, saved, &context](const at::Tensor& in) {
        saved->a = in;
        const at::Tensor all = context.sequence_parallel ? gather_tokens(in, *context.tensor) : in;
        at::Tensor y = all.matmul(weight_of(p).t());
        if (p.bias) y.add_(bias_of(p));
        return y;
      },
      [p, saved, &context](const at::Tensor& g) {
        // What was gathered is not kept but gathered again, beside the input gradient's product.
        at::Tensor all = saved->a;
        Pending gather;
        if (context.sequence_parallel) {
          std::vector<std::int64_t> sizes = all.sizes().vec();
          sizes[0] *= context.tensor->size();
          const at::Tensor own = all.contiguous();
          all = at::empty(sizes, own.options());
          gather = context.tensor->all_gather(all, own);
        }
        at::Tensor gx = g.matmul(weight_of(p));
        gather.wait();
        if (context.sequence_parallel) {
          gx = scatter_tokens(gx, *context.tensor);
        } else {
          context.tensor->all_reduce(gx).wait();
        }
        add_bias_gradient(p, g);
        add_weight_gradient(p, g, all, context);
        return gx;
      });
}

at::Tensor row_linear(const at::Tensor& x, const LinearParameter& p, TensorContext& context) {
  auto saved = std::make_shared<Saved>();
  return piece(
      x,
      [p, saved, &context](const at::Tensor& in) {
        saved->a = in;
        at::Tensor y = in.matmul(weight_of(p).t());
        if (context.sequence_parallel) {
          y = scatter_tokens(y, *context.tensor);
        } else {
          context.tensor->all_reduce(y).wait();
        }
        if (p.bias) y.add_(bias_of(p));
        return y;
      },
      [p, saved, &context](const at::Tensor& g) {
        add_bias_gradient(p, g);
        const at::Tensor all = context.sequence_parallel ? gather_tokens(g, *context.tensor) : g;
        add_weight_gradient(p, all, saved->a, context);
        return all.matmul(weight_of(p));
      });
}

at::Tensor plain_linear(const at::Tensor& x, const LinearParameter& p, TensorContext& context) {
  auto saved = std::make_shared<Saved>();
  return piece(
      x,
      [p, saved](const at::Tensor& in) {
        saved->a = in;
        at::Tensor y = in.matmul(weight_of(p).t());
        if (p.bias) y.add_(bias_of(p));
        return y;
      },
      [p, saved, &context](const at::Tensor& g) {
        add_bias_gradient(p, g);
        add_weight_gradient(p, g, saved->a, context);
        return g.matmul(weight_of(p));
      });
}

at::Tensor norm(const at::Tensor& x, const NormParameter& p) {
  return p.bias ? layer_norm(x, p) : rms_norm(x, p);
}

at::Tensor gated_silu(const at::Tensor& x) {
  auto saved = std::make_shared<Saved>();
  return piece(
      x,
      [saved](const at::Tensor& in) {
        saved->a = in;
        const std::int64_t f = in.size(-1) / 2;
        return at::silu(in.narrow(-1, 0, f)).mul_(in.narrow(-1, f, f));
      },
      [saved](const at::Tensor& g) {
        const std::int64_t f = saved->a.size(-1) / 2;
        const at::Tensor gate = saved->a.narrow(-1, 0, f);
        at::Tensor gx = at::empty_like(saved->a);
        const at::Tensor s = at::sigmoid(gate);
        at::Tensor silu = s.mul(gate);
        gx.narrow(-1, f, f).copy_(g.mul(silu));
        // d silu = s + silu (1 - s)
        const at::Tensor slope = silu.sub_(silu.mul(s)).add_(s);
        gx.narrow(-1, 0, f).copy_(slope.mul_(g).mul_(saved->a.narrow(-1, f, f)));
        return gx;
      });
}

at::Tensor recomputed(const at::Tensor& x, TensorFunction compute, Recorder& recorder) {
  auto saved = std::make_shared<Saved>();
  return piece(
      x,
      [saved, compute](const at::Tensor& in) {
        saved->a = in;
        return compute(in);
      },
      [saved, compute, &recorder](const at::Tensor& g) {
        const at::AutoGradMode with_gradients(true);
        at::Tensor in = saved->a.detach().requires_grad_(true);
        at::Tensor out;
        {
          const ScopedSpan span(recorder, SpanKind::kRecompute);
          out = compute(in);
        }
        return torch::autograd::grad({out}, {in}, {g})[0];
      });
}

at::Tensor exchange_rows(const at::Tensor& x, std::vector<std::int64_t> sent,
                         std::vector<std::int64_t> received, ProcessGroup& group) {
  const auto run = [&group](const at::Tensor& in, const std::vector<std::int64_t>& out_rows,
                            const std::vector<std::int64_t>& in_rows) {
    std::int64_t rows = 0;
    for (const std::int64_t n : out_rows) rows += n;
    at::Tensor out = at::empty({rows, in.size(1)}, in.options());
    group.all_to_all(out, in.contiguous(), out_rows, in_rows).wait();
    return out;
  };
  return piece(
      x, [run, sent, received](const at::Tensor& in) { return run(in, received, sent); },
      [run, sent, received](const at::Tensor& g) { return run(g, sent, received); });
}

at::Tensor cross_entropy_sum(const at::Tensor& logits, const at::Tensor& targets,
                             TensorContext& context) {
  auto saved = std::make_shared<Saved>();
  ProcessGroup& group = *context.tensor;
  return piece(
      logits,
      [saved, targets, &group](const at::Tensor& in) {
        const std::int64_t width = in.size(1);
        at::Tensor top = std::get<0>(in.max(1, true));
        group.all_reduce(top, true).wait();
        at::Tensor shifted = in.sub(top);
        const at::Tensor own = targets.sub(group.rank() * width);
        const at::Tensor here = own.ge(0).logical_and_(own.lt(width));
        const at::Tensor index = own.clamp(0, width - 1).unsqueeze(1);
        at::Tensor at_target = shifted.gather(1, index).squeeze(1).mul_(here.to(in.dtype()));
        group.all_reduce(at_target).wait();
        at::Tensor probabilities = shifted.exp_();
        at::Tensor sum = probabilities.sum(1, true);
        group.all_reduce(sum).wait();
        at::Tensor loss = sum.squeeze(1).log().sub_(at_target).sum();
        saved->a = probabilities.div_(sum);
        saved->b = index;
        saved->c = here;
        return loss;
      },
      [saved](const at::Tensor& g) {
        at::Tensor gradient = saved->a;  // of its own: nobody reads the probabilities again
        gradient.scatter_add_(1, saved->b, saved->c.to(gradient.dtype()).neg().unsqueeze(1));
        return gradient.mul_(g);
      });
}

}  // namespace towtank
