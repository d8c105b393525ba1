// The time of these products is the time in which the weight is read from memory. oneDNN's kernel reads one
// place at a time, and so it does not reach the memory's speed. These kernels read four places at a time.
#include "kernels/one_row.h"

#include <ATen/Parallel.h>
#include <torch/csrc/inductor/aoti_torch/c/shim.h>

#include <atomic>
#include <cstring>
#include <mutex>

#include "kernels/onednn.h"

#if defined(__x86_64__) && defined(_OPENMP)  // without OpenMP, at::parallel_for has one thread
#define TT_RUNTIME_ONE_ROW 1
#include <immintrin.h>
#endif

namespace tt::runtime::kernels::one_row {

namespace {

using at::Tensor;

// The layout in which oneDNN packs a weight of bfloat16 for processors with AMX. A panel has 32 rows of the
// weight. Its elements are ordered by pair of columns, then by row, then by the column in the pair. Rows and
// columns that a panel has beyond the weight are zeros. A weight has a multiple of 16 pairs.
constexpr int64_t panel_rows = 32, pair_block = 16;

struct Panels {
  const uint16_t* data;  // the bits of the elements
  int64_t rows, columns;
  int64_t count() const { return (rows + panel_rows - 1) / panel_rows; }
  int64_t pairs() const { return (columns + 2 * pair_block - 1) / (2 * pair_block) * pair_block; }
  int64_t panel_elements() const { return pairs() * panel_rows * 2; }
};

// The memory of a packed tensor. PyTorch shows it only through this function of its stable C interface.
Panels panels_of(Tensor weight) {
  void* data = nullptr;
  const auto error = aoti_torch_get_data_ptr(reinterpret_cast<AtenTensorHandle>(&weight), &data);
  TORCH_INTERNAL_ASSERT(error == AOTI_TORCH_SUCCESS, "a packed weight has no memory");
  return {static_cast<const uint16_t*>(data), weight.size(0), weight.size(1)};
}

bool is_panel(const Panels& p, const uint16_t* plain, int64_t panel) {
  const uint16_t* found = p.data + panel * p.panel_elements();
  for (int64_t pair = 0; pair < p.pairs(); ++pair)
    for (int64_t i = 0; i < panel_rows; ++i)
      for (int64_t column = 2 * pair; column < 2 * pair + 2; ++column) {
        const int64_t row = panel * panel_rows + i;
        const bool inside = row < p.rows && column < p.columns;
        if (*found++ != (inside ? plain[row * p.columns + column] : 0)) return false;
      }
  return true;
}

// Whether the packed weight has the layout above. oneDNN chooses it by the shape and by the processor, and
// does not promise it, so that all elements are compared.
bool has_panels(const Tensor& weight) {
  static const auto bytes = onednn::find<int64_t(const Tensor&)>("mkldnn::_nbytes", "");
  const Panels p = panels_of(weight);
  if (weight.dim() != 2 || bytes.call(weight) != p.count() * p.panel_elements() * 2) return false;
  const Tensor plain = weight.to_dense().contiguous();
  const auto* elements = static_cast<const uint16_t*>(plain.const_data_ptr());
  std::atomic<bool> same = true;
  at::parallel_for(0, p.count(), 1, [&](int64_t begin, int64_t end) {
    for (int64_t panel = begin; panel < end && same; ++panel)
      if (!is_panel(p, elements, panel)) same = false;
  });
  return same;
}

// What a packed weight keeps about its layout.
struct Examined : c10::BackendMeta {
  explicit Examined(bool readable) : readable(readable) {}
  bool readable;
};

bool is_readable(const Tensor& weight) {
  static std::mutex examining;  // programs of several threads may share a weight
  const std::lock_guard lock(examining);
  auto* impl = weight.unsafeGetTensorImpl();
  if (!impl->get_backend_meta()) impl->set_backend_meta(c10::make_intrusive<Examined>(has_panels(weight)));
  return static_cast<Examined*>(impl->get_backend_meta())->readable;
}

#ifdef TT_RUNTIME_ONE_ROW

bool has_instructions() {
  static const bool found = __builtin_cpu_supports("avx512bf16") && __builtin_cpu_supports("avx512bw");
  return found;
}

// Multiplies panels `first`, `first + apart`, ... by the row and writes their results. The processor's own
// prefetching stops at the end of each page, so the loop asks for what it needs 16 lines later.
template <int streams>
__attribute__((target("avx512f,avx512bw,avx512bf16"))) void multiply(const Panels& p, const char* row,
                                                                     float* out, int64_t first,
                                                                     int64_t apart) {
  constexpr int64_t line = 64, ahead = 16 * line;
  const auto* start = reinterpret_cast<const char*>(p.data + first * p.panel_elements());
  const int64_t stride = apart * p.panel_elements() * 2, pairs = p.pairs();
  __m512 sums[streams][2] = {};
  for (int64_t pair = 0; pair < pairs; ++pair) {
    int32_t elements;  // two of the row
    std::memcpy(&elements, row + pair * 4, 4);
    const auto factor = reinterpret_cast<__m512bh>(_mm512_set1_epi32(elements));
#pragma GCC unroll 4
    for (int s = 0; s < streams; ++s) {
      const char* at = start + s * stride + pair * 2 * line;
      for (int half = 0; half < 2; ++half) {
        _mm_prefetch(at + half * line + ahead, _MM_HINT_T0);
        const auto weights = reinterpret_cast<__m512bh>(_mm512_loadu_si512(at + half * line));
        sums[s][half] = _mm512_dpbf16_ps(sums[s][half], weights, factor);
      }
    }
  }
  for (int s = 0; s < streams; ++s)
    for (int half = 0; half < 2; ++half)
      _mm512_storeu_ps(out + (first + s * apart) * panel_rows + half * 16, sums[s][half]);
}

void multiply_all(const Panels& p, const char* row, float* out) {
  constexpr int64_t streams = 4;
  at::parallel_for(0, p.count(), 1, [&](int64_t begin, int64_t end) {
    const int64_t each = (end - begin) / streams;
    for (int64_t i = 0; i < each; ++i) multiply<streams>(p, row, out, begin + i, each);
    for (int64_t panel = begin + each * streams; panel < end; ++panel) multiply<1>(p, row, out, panel, 0);
  });
}

#else

bool has_instructions() { return false; }

void multiply_all(const Panels&, const char*, float*) {
  TORCH_INTERNAL_ASSERT(false, "this build has no kernels for one row");
}

#endif

}  // namespace

bool takes(const Tensor& x, const Tensor& weight) {
  return has_instructions() && x.scalar_type() == at::kBFloat16 && x.numel() == x.size(-1) &&
         weight.is_mkldnn() && weight.scalar_type() == at::kBFloat16 && is_readable(weight);
}

Tensor product(const Tensor& x, const Tensor& weight) {
  const Panels p = panels_of(weight);
  const Tensor row = at::constant_pad_nd(x.reshape({-1}), {0, 2 * p.pairs() - p.columns}).contiguous();
  Tensor out = at::empty({p.count() * panel_rows}, at::kFloat);
  multiply_all(p, static_cast<const char*>(row.const_data_ptr()), out.mutable_data_ptr<float>());
  std::vector<int64_t> shape = x.sizes().vec();
  shape.back() = p.rows;
  return out.narrow(0, 0, p.rows).view(shape);
}

}  // namespace tt::runtime::kernels::one_row
