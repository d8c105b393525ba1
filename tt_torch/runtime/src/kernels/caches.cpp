// Writes to caches in their own memory. A cache is (users, heads, positions, depth). A cache in pages is
// (pages, heads, size of a page, depth), and a page table, (users, n), lists the pages of each user.
#include "kernels/kernels.h"

namespace tt::runtime::kernels {

namespace {

using Tensor = at::Tensor;
using Ints = std::vector<int64_t>;

struct Write {
  Slot cache, source;
  Ints size, given;  // the shapes of both
};

Write read_write(OpBuilder& op) {
  const Slot cache = op.in("cache"), source = op.in("input");
  Write w{cache, source, op.spec(cache).shape, op.spec(source).shape};
  op.require(w.size.size() == 4 && w.given.size() == 4, "caches have four dimensions");
  op.require(w.size[1] == w.given[1] && w.size[3] == w.given[3], "cache and input differ in heads or depth");
  return w;
}

// The number of the first user that is written.
int64_t first_user(OpBuilder& op, const Write& w, int64_t users) {
  const int64_t row = op.attributes().integer("batch_offset");
  op.require(row <= w.size[0] - users, "the cache does not have these users");
  return row;
}

// The number of pages that each user has.
int64_t pages_per_user(OpBuilder& op, Slot table, int64_t users) {
  const auto& shape = op.spec(table).shape;
  op.require(shape.size() == 2 && (users < 0 || shape[0] == users),
             "the page table must have a row per user");
  return shape[1];
}

Tensor integers(Frame& f, Slot slot) { return f[slot].to(at::kLong).contiguous(); }

// The number of the page at a place of the page table.
int64_t page_at(const Tensor& table, int64_t user, int64_t place, int64_t pages) {
  TORCH_CHECK_INDEX(user >= 0 && user < table.size(0), "user ", user, " is out of bounds for ", table.size(0),
                    " users");
  TORCH_CHECK_INDEX(place < table.size(1), "page ", place, " of a user is out of bounds for ", table.size(1));
  const int64_t page = table.data_ptr<int64_t>()[user * table.size(1) + place];
  TORCH_CHECK_INDEX(page >= 0 && page < pages, "page ", page, " is out of bounds for ", pages, " pages");
  return page;
}

}  // namespace

static void fill_cache(OpBuilder& op) {
  const Write w = read_write(op);
  const int64_t row = first_user(op, w, w.given[0]);
  op.require(w.given[2] <= w.size[2], "the cache does not have these positions");
  op.update(w.cache, [=](Frame& f) {
    f[w.cache].narrow(0, row, w.given[0]).narrow(2, 0, w.given[2]).copy_(f[w.source]);
  });
}

// The input is (1, heads, users, depth). It is written at one position, which is the same for all users.
static void update_cache(OpBuilder& op) {
  const Write w = read_write(op);
  const Slot position = op.in("update_index");
  const int64_t row = first_user(op, w, w.given[2]);
  op.require(w.given[0] == 1, "the input must have one row per user");
  op.update(w.cache, [=](Frame& f) {
    f[w.cache]
        .narrow(0, row, w.given[2])
        .narrow(2, f[position].reshape({-1})[0].item<int64_t>(), 1)
        .copy_(f[w.source].permute({2, 1, 0, 3}));
  });
}

// The input is (1, users, heads, depth). There is one position per user. A user with a negative position is
// skipped.
static void paged_update_cache(OpBuilder& op) {
  const Slot cache = op.in("cache"), source = op.in("input"), position = op.in("update_index");
  const auto table = op.maybe("page_table");
  const Ints size = op.spec(cache).shape, given = op.spec(source).shape;
  op.require(size.size() == 4 && given.size() == 4, "caches have four dimensions");
  op.require(given[0] == 1 && given[2] >= size[1] && given[3] == size[3],
             "the input must be 1 x users x at least the heads of the cache x depth");
  op.require(!op.attributes().flag("share_cache"), "share_cache has no kernel");
  op.require(checked_volume(op.spec(position).shape) == given[1], "there must be one position per user");
  op.require(table || size[0] == given[1],
             "without a page table, the cache must have the users of the input");
  if (table) pages_per_user(op, *table, given[1]);
  op.update(cache, [=](Frame& f) {
    const Tensor positions = integers(f, position);
    const Tensor pages = table ? integers(f, *table) : at::arange(given[1], at::kLong).unsqueeze(1);
    for (int64_t user = 0; user < given[1]; ++user) {
      const int64_t at = positions.data_ptr<int64_t>()[user];
      if (at < 0) continue;
      TORCH_CHECK_INDEX(size[2] > 0, "position ", at, " is out of bounds for an empty cache");
      const int64_t page = page_at(pages, user, at / size[2], size[0]);
      f[cache].select(0, page).select(1, at % size[2]).copy_(f[source][0][user].narrow(0, 0, size[1]));
    }
  });
}

// The input is (n, heads, length, depth). It is written to the first positions of n users. If the op does not
// have the numbers of the users, n is 1 and the first user is written.
static void paged_fill_cache(OpBuilder& op) {
  const Write w = read_write(op);
  const Slot table = op.in("page_table");
  const auto users = op.maybe("batch_idx_tensor");
  const int64_t count = pages_per_user(op, table, -1), page = w.size[2], length = w.given[2];
  op.require(page > 0 && length <= count * page, "the pages of a user do not have these positions");
  op.require(w.given[0] == (users ? checked_volume(op.spec(*users).shape) : 1),
             "there must be one user for each row of the input");
  op.update(w.cache, [=](Frame& f) {
    const Tensor pages = integers(f, table);
    const Tensor chosen = users ? integers(f, *users) : at::zeros({1}, at::kLong);
    for (int64_t row = 0; row < w.given[0]; ++row) {
      const Tensor source = f[w.source].select(0, row);
      for (int64_t at = 0; at < length; at += page) {
        const int64_t held = std::min(page, length - at);
        const int64_t target = page_at(pages, chosen.data_ptr<int64_t>()[row], at / page, w.size[0]);
        f[w.cache].select(0, target).narrow(1, 0, held).copy_(source.narrow(1, at, held));
      }
    }
  });
}

static constexpr Row cache_rows[] = {
    {"FillCacheOp", fill_cache},
    {"PagedFillCacheOp", paged_fill_cache},
    {"PagedUpdateCacheOp", paged_update_cache},
    {"UpdateCacheOp", update_cache},
};
constinit const Table cache_ops = cache_rows;

}  // namespace tt::runtime::kernels
