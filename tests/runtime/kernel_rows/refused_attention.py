"""Programs of attention, heads and caches, which kernels refuse. refusals.py says how they are written."""

from kernel_rows.fields import ints, x, y

FOUR = "query, key and value must have four dimensions"
HEADS = "the number of query heads is not a multiple of the number of key heads"
UNLIKE, KEYS = "key and value differ in batch, heads or length", "query and key differ in batch or depth"
BROADCAST = "the mask cannot be broadcast to the scores"
WIDTH = "the width of the input is not a multiple of the number of heads"
CACHES = "the input needs an even width, and both caches the same shape of at least two dimensions"
TURNED = "the input must be B x H x S x D, and D a multiple of 32"
TABLES = "the caches must be (1, 1 or H, at least S, D)"
RANK = "the input must have four dimensions, and num_heads of its rows"
ATTENTION = {
    "ScaledDotProductAttentionOp": [
        ("operand query is missing", {"query": None}),
        ("result out is missing", {"out": None}),
        ("the operands of an attention must have four dimensions", {"query": x(4, 9, 16)}),
        ("the operands of an attention must have four dimensions", {"attention_mask": x(9, 9)}),
        (FOUR, {"key": x(2, 4, 9)}), (FOUR, {"value": x(4, 9, 16)}),
        (HEADS, {"key": x(2, 3, 9, 16)}), (HEADS, {"key": x(2, 0, 9, 16), "value": x(2, 0, 9, 16)}),
        (KEYS, {"key": x(1, 4, 9, 16)}), (KEYS, {"key": x(2, 4, 9, 8)}),
        *((UNLIKE, {"value": x(*shape)}) for shape in [(1, 4, 9, 16), (2, 2, 9, 16), (2, 4, 8, 16)]),
        *((BROADCAST, {"attention_mask": x(*shape)})
          for shape in [(3, 4, 9, 9), (2, 3, 9, 9), (2, 4, 2, 9), (2, 4, 9, 8)]),
        ("the sink must have one value per head", {"attention_sink": x(1, 2, 1, 1)}),
        ("an attention mask and is_causal exclude each other", {"is_causal": True, "attention_mask": x(1, 1, 9, 9)}),
        ("a sliding window without is_causal has no kernel", {"sliding_window_size": 3}),
    ],
    "FlashMlaPrefillOp": [("head_dim_v is larger than the depth of the keys", {"head_dim_v": 17})],
    "ChunkedScaledDotProductAttentionOp": [
        ("there must be one chunk_start_idx", {"chunk_start_idx": ints(2)}),
        ("the op needs much more memory than its tensors have", {"page_table": ints(3, 1 << 21)}),
        ("there is no page", {"key": x(0, 2, 4, 16), "value": x(0, 2, 4, 16)}), (KEYS, {"page_table": ints(2, 2)}),
    ],
    "PagedScaledDotProductAttentionDecodeOp": [
        ("pages need cur_pos_tensor or a mask", {"cur_pos_tensor": None}),
        ("the op needs much more memory than its tensors have", {"page_table": ints(3, 1 << 21)}),
        ("there is no page", {"key": x(0, 2, 4, 16), "value": x(0, 2, 4, 16)}),
        *(("key, value and page table need four and two dimensions", wrong)
          for wrong in ({"page_table": ints(6)}, {"key": x(7, 2, 4)}, {"value": x(7, 2, 4)})),
        (KEYS, {"page_table": ints(2, 2)}), (UNLIKE, {"value": x(7, 2, 5, 16)}),
    ],
    "ScaledDotProductAttentionDecodeOp": [
        ("a sliding window needs cur_pos_tensor", {"cur_pos_tensor": None, "sliding_window_size": 3}),
        ("there must be one position per user", {"cur_pos_tensor": ints(2)}),
        *((BROADCAST, {"attention_mask": x(*shape), "is_causal": False})
          for shape in [(2, 3, 4, 8), (1, 2, 4, 8), (1, 3, 3, 8), (1, 3, 4, 7)]),
        ("an attention mask and is_causal exclude each other", {"attention_mask": x(1, 3, 4, 8)}),
        ("a sliding window without is_causal has no kernel", {"sliding_window_size": 3, "is_causal": False}),
        (KEYS, {"key": x(2, 2, 8, 16)}), (UNLIKE, {"value": x(3, 2, 7, 16)}),
    ],
    "SplitQueryKeyValueAndSplitHeadsOp": [
        *((WIDTH, wrong) for wrong in ({"in": x(5, 128)}, {"in": x(2, 5, 130)}, {"num_heads": 0}, {"num_kv_heads": 0})),
    ],
    "NLPConcatHeadsOp": [("the input must be B x H x S x D", {"in": x(4, 5, 16)})],
    "NLPCreateQKVHeadsDecodeOp": [
        ("batch_offset has no kernel", {"batch_offset": ints(1)}),
        (WIDTH, {"input": x(1, 3, 128)}), (WIDTH, {"input": x(1, 1, 3, 130)}), (WIDTH, {"num_heads": 0}),
        (WIDTH, {"num_kv_heads": 0}),
    ],
    "NLPConcatHeadsDecodeOp": [(RANK, {"in": x(3, 32, 16)}), (RANK, {"num_heads": 33})],
    "RotaryEmbeddingOp": [
        (CACHES, {"input": x(16), "out": y(16)}), (CACHES, {"input": x(2, 4, 5, 15)}),
        (CACHES, {"sin_cache": x(1, 1, 9, 8)}), (CACHES, {"cos_cache": x(16), "sin_cache": x(16)}),
        ("the caches have too few positions", {"input": x(2, 4, 10, 16)}),
        ("the caches have too few positions", {"token_index": 9}),
        ("the caches cannot be broadcast to the input", dict.fromkeys(("cos_cache", "sin_cache"), x(1, 1, 1, 9, 16))),
        ("the result has too few rows", {"out": y(2, 4, 4, 16)}), ("the result has too few rows", {"out": y(8, 5, 16)}),
        ("the result differs from the input in more than its number of rows", {"out": y(2, 5, 5, 16)}),
        ("the result differs from the input in more than its number of rows", {"out": y(2, 4, 32, 18)}),
    ],
    "RotaryEmbeddingLlamaOp": [
        ("is_decode_mode has no kernel", {"is_decode_mode": True}),
        ("the matrix must be 1 x 1 x 32 x 32", {"trans_mat": x(1, 1, 64, 64)}),
        *((TURNED, {"input": x(*shape)}) for shape in [(4, 5, 64), (2, 4, 5, 48)]),
        *((TABLES, {"cos_cache": x(*shape), "sin_cache": x(*shape)})
          for shape in [(2, 1, 9, 64), (1, 2, 9, 64), (1, 1, 4, 64), (1, 1, 9, 32), (9, 64)]),
        (TABLES, {"sin_cache": x(1, 1, 8, 64)}),
    ],
    "PagedUpdateCacheOp": [
        *(("caches have four dimensions", {name: x(2, 5, 16)}) for name in ("cache", "input")),
        *(("the input must be 1 x users x at least the heads of the cache x depth", {"input": x(*shape)})
          for shape in [(2, 3, 2, 16), (1, 3, 1, 16), (1, 3, 2, 8)]),
        ("share_cache has no kernel", {"share_cache": True}),
        ("there must be one position per user", {"update_index": ints(2)}),
        ("without a page table, the cache must have the users of the input", {"page_table": None}),
        *(("the page table must have a row per user", {"page_table": ints(*shape)}) for shape in [(3,), (2, 2)]),
    ],
    "PagedFillCacheOp": [
        *(("caches have four dimensions", {name: x(2, 5, 16)}) for name in ("cache", "input")),
        ("cache and input differ in heads or depth", {"input": x(1, 3, 7, 16)}),
        ("the page table must have a row per user", {"page_table": ints(3)}),
        *(("the pages of a user do not have these positions", wrong)
          for wrong in ({"input": x(1, 2, 9, 16)}, {"cache": x(7, 2, 0, 16)})),
        *(("there must be one user for each row of the input", wrong)
          for wrong in ({"input": x(2, 2, 7, 16)}, {"batch_idx_tensor": ints(2)})),
    ],
    "FillCacheOp": [
        *(("caches have four dimensions", {name: x(2, 5, 16)}) for name in ("cache", "input")),
        *(("cache and input differ in heads or depth", {"input": x(1, heads, 5, depth)})
          for heads, depth in [(3, 16), (2, 8)]),
        *(("the cache does not have these users", {"batch_offset": row}) for row in (3, 9)),
        ("the cache does not have these positions", {"input": x(1, 2, 9, 16)}),
    ],
    "UpdateCacheOp": [
        *(("caches have four dimensions", {name: x(2, 5, 16)}) for name in ("cache", "input")),
        ("cache and input differ in heads or depth", {"input": x(1, 1, 2, 16)}),
        *(("the cache does not have these users", {"batch_offset": row}) for row in (2, 9)),
        ("the input must have one row per user", {"input": x(2, 2, 1, 16)}),
    ],
}  # fmt: skip
