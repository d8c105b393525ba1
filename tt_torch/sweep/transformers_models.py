"""Families of the transformers package. Each is made from its configuration, with two layers and few channels."""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Callable

import torch
import transformers
from torch import nn

from tt_torch.sweep.registry import Config, Inputs, Model, Setting

BATCH, LENGTH, VOCABULARY, SIDE = 2, 16, 128, 32

# Set in every configuration that has the field, under this name or a name in its attribute_map.
_TINY: Config = {
    "vocab_size": VOCABULARY,
    "hidden_size": 32,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "intermediate_size": 64,
    "max_position_embeddings": 64,
    "head_dim": 8,
    "image_size": SIDE,
    "patch_size": 8,
    "pad_token_id": 0,
    "bos_token_id": 1,
    "eos_token_id": 2,
    "use_cache": False,
}


def tokens() -> torch.Tensor:
    return torch.randint(3, VOCABULARY, (BATCH, LENGTH))


def text() -> Inputs:
    mask = torch.ones(BATCH, LENGTH, dtype=torch.int64)
    mask[1, LENGTH // 2 :] = 0  # the second text is shorter
    return {"input_ids": tokens(), "attention_mask": mask}


def causal() -> Inputs:
    return {"input_ids": tokens()}


def pair() -> Inputs:
    return {"input_ids": tokens(), "decoder_input_ids": tokens()[:, :8]}


def image(side: int = SIDE) -> Inputs:
    return {"pixel_values": torch.randn(BATCH, 3, side, side)}


def image_and_text() -> Inputs:
    return {**text(), **image()}


def spectrogram() -> Inputs:
    return {"input_features": torch.randn(BATCH, 16, 32), "decoder_input_ids": tokens()[:, :8]}


def sound(samples: int = 2000) -> Inputs:
    return {"input_values": torch.randn(BATCH, samples)}


def sound_and_spectrogram() -> Inputs:
    return {"input_values": torch.randn(BATCH, 400), "decoder_input_values": torch.randn(BATCH, 8, 16)}


def text_and_codes() -> Inputs:
    """The decoder writes two codes per step; each is a row of its input."""
    return {"input_ids": tokens(), "decoder_input_ids": torch.randint(0, 32, (2 * BATCH, 8))}


def channel_of_sound() -> Inputs:
    return {"input_values": torch.randn(BATCH, 1, 1280)}


def bytes_of_text() -> Inputs:
    return {"inputs": tokens()}


def config_of(kind: str, **overrides: Setting) -> transformers.PreTrainedConfig:
    """The configuration of a family, with the small values above and with `overrides`."""
    config_class = transformers.CONFIG_MAPPING[kind]
    fields, other_names = {f.name for f in dataclasses.fields(config_class)}, config_class.attribute_map
    tiny = {other_names.get(name, name): value for name, value in _TINY.items()}
    return config_class(**{name: value for name, value in tiny.items() if name in fields} | overrides)


def build(kind: str, inputs: Callable[[], Inputs], head: str, overrides: Config) -> tuple[nn.Module, Inputs]:
    config = config_of(kind, **overrides)
    head_class = getattr(transformers, head)
    module = head_class.from_config(config) if head.startswith("Auto") else head_class(config)
    return module.eval(), inputs()


def family(
    kind: str, inputs: Callable[[], Inputs], head: str = "AutoModel", name: str = "", **overrides: Setting
) -> Model:
    make = functools.partial(build, kind, inputs, head, overrides)
    return Model(name or kind.replace("-", "_"), make, "transformers", {"head": head, **overrides})


LM = "AutoModelForCausalLM"
CLASSIFIER = "AutoModelForImageClassification"
_TOWERS: Config = {
    "text_config": {**_TINY, "max_position_embeddings": LENGTH},
    "vision_config": {k: v for k, v in _TINY.items() if "token" not in k and "vocab" not in k},
}
_SOUND: Config = {
    "conv_dim": (32, 32),
    "conv_kernel": (10, 3),
    "conv_stride": (5, 2),
    "num_conv_pos_embeddings": 16,
    "num_conv_pos_embedding_groups": 2,
    "num_feat_extract_layers": 2,
}
_EXPERTS: Config = {"num_experts_per_tok": 2}
_SAM: Config = {"image_size": 64, "patch_size": 8}
_STAGES: Config = {"hidden_sizes": [16, 32], "depths": [1, 1]}
_SWIN: Config = {"embed_dim": 16, "depths": [1, 1], "num_heads": [2, 4], "window_size": 4, "patch_size": 4}

MODELS = [
    family("bert", text),
    family("gpt2", causal, LM),
    family("gpt2", causal, LM, "gpt2_eager_attention", attn_implementation="eager"),
    family("llama", causal, LM),
    family("distilbert", text),
    family("roberta", text),
    family("albert", text, embedding_size=16),
    family("electra", text, embedding_size=16),
    family("gpt_neo", causal, LM, attention_types=[[["global", "local"], 1]], window_size=4),
    family("gpt_neox", causal, LM),
    family("opt", causal, LM, ffn_dim=64, word_embed_proj_dim=32),
    family("bloom", causal, LM),
    family("falcon", causal, LM),
    family("mistral", causal, LM, sliding_window=8),
    family("qwen2", causal, LM),
    family("qwen3", causal, LM),
    family("gemma", causal, LM),
    family("gemma2", causal, LM, sliding_window=8),
    family("phi", causal, LM),
    family("phi3", causal, LM),
    family("mixtral", causal, LM, **_EXPERTS, num_local_experts=4),
    family("mixtral", causal, LM, "mixtral_batched_mm", **_EXPERTS, num_local_experts=4,
           experts_implementation="batched_mm"),
    family("mamba", causal, LM, state_size=8, time_step_rank=4),
    family("mamba2", causal, LM, state_size=8, num_heads=8, n_groups=2, chunk_size=8),
    family("t5", pair, d_model=32, d_kv=8, d_ff=64, num_layers=2, num_heads=4, decoder_start_token_id=0),
    family("bart", pair, d_model=32, encoder_layers=2, decoder_layers=2, encoder_ffn_dim=64, decoder_ffn_dim=64,
           encoder_attention_heads=4, decoder_attention_heads=4),
    family("whisper", spectrogram, d_model=32, encoder_layers=2, decoder_layers=2, encoder_ffn_dim=64,
           decoder_ffn_dim=64, encoder_attention_heads=4, decoder_attention_heads=4, num_mel_bins=16,
           max_source_positions=16, max_target_positions=64, decoder_start_token_id=1),
    family("wav2vec2", sound, **_SOUND),
    family("hubert", sound, **_SOUND),
    family("vit", image, CLASSIFIER),
    family("deit", image, "DeiTForImageClassification"),
    family("beit", image, CLASSIFIER, use_relative_position_bias=True),
    family("beit", image, CLASSIFIER, "beit_no_relative_position"),
    family("dinov2", image, CLASSIFIER),
    family("swin", image, CLASSIFIER, **_SWIN),
    family("swinv2", image, CLASSIFIER, **_SWIN),
    family("convnext", image, CLASSIFIER, **_STAGES, num_stages=2, patch_size=4),
    family("resnet", image, CLASSIFIER, **_STAGES, embedding_size=16),
    family("regnet", image, CLASSIFIER, **_STAGES, embedding_size=16, groups_width=8),
    family("mobilenet_v1", image, CLASSIFIER, depth_multiplier=0.25),
    family("mobilenet_v2", image, CLASSIFIER, depth_multiplier=0.25),
    family("efficientnet", functools.partial(image, 64), CLASSIFIER, image_size=64, width_coefficient=0.25,
           depth_coefficient=0.25, hidden_dim=320),
    family("segformer", image, "AutoModelForSemanticSegmentation", depths=[1, 1, 1, 1], hidden_sizes=[8, 16, 24, 32],
           num_attention_heads=[1, 2, 2, 4], decoder_hidden_size=32),
    family("detr", functools.partial(image, 64), "AutoModelForObjectDetection", d_model=32, encoder_layers=2,
           decoder_layers=2, encoder_ffn_dim=64, decoder_ffn_dim=64, encoder_attention_heads=4,
           decoder_attention_heads=4, num_queries=5,
           backbone_config={"model_type": "resnet", **_STAGES, "embedding_size": 16, "out_features": ["stage2"]}),
    family("dpt", image, "AutoModelForDepthEstimation", num_hidden_layers=4, backbone_out_indices=[0, 1, 2, 3],
           neck_hidden_sizes=[8, 8, 16, 16], fusion_hidden_size=16),
    family("clip", image_and_text, **_TOWERS, projection_dim=16),
    family("siglip", image_and_text, **_TOWERS),
    family("xlnet", text, d_model=32, n_layer=2, n_head=4, d_inner=64),
    family("deberta-v2", text, relative_attention=True, pos_att_type=["p2c", "c2p"]),
    family("perceiver", bytes_of_text, "PerceiverForMaskedLM", num_latents=8, d_latents=32, d_model=32, num_blocks=1,
           num_self_attends_per_block=2, num_self_attention_heads=4, num_cross_attention_heads=4, qk_channels=32,
           v_channels=32),
    family("rwkv", causal, LM, context_length=64),
    family("olmo2", causal, LM),
    family("qwen3_moe", causal, LM, **_EXPERTS, num_experts=4, moe_intermediate_size=32),
    family("modernbert", text, "AutoModelForMaskedLM"),
    family("longformer", text, attention_window=[8, 8]),
    family("vits", causal, ffn_dim=64, flow_size=16, spectrogram_bins=17, upsample_initial_channel=16,
           upsample_rates=[4, 4], upsample_kernel_sizes=[8, 8], resblock_kernel_sizes=[3],
           resblock_dilation_sizes=[[1, 3]], duration_predictor_filter_channels=16, depth_separable_num_layers=2,
           prior_encoder_num_flows=2, duration_predictor_num_flows=2, prior_encoder_num_wavenet_layers=2,
           noise_scale=0.0, noise_scale_duration=0.0),
    family("encodec", channel_of_sound, hidden_size=16, num_filters=4, codebook_size=32, codebook_dim=16,
           target_bandwidths=[1.5]),
    family("squeezebert", text, embedding_size=32),
    family("dpr", text, "DPRQuestionEncoder"),
    family("codegen", causal, LM, n_embd=32, n_layer=2, n_head=4, rotary_dim=4, n_ctx=64, n_positions=64),
    family("xglm", causal, LM, d_model=32, num_layers=2, attention_heads=4, ffn_dim=64),
    family("gpt_oss", causal, LM, **_EXPERTS, num_local_experts=4, sliding_window=8),
    family("deepseek_v3", causal, LM, **_EXPERTS, num_key_value_heads=4, n_routed_experts=4, n_group=2, topk_group=1,
           moe_intermediate_size=32, kv_lora_rank=16, q_lora_rank=16, qk_rope_head_dim=8, qk_nope_head_dim=8,
           v_head_dim=8, first_k_dense_replace=1),
    family("qwen2", causal, LM, "qwen2_sliding_window", use_sliding_window=True, sliding_window=8,
           max_window_layers=1),
    family("phimoe", causal, LM, **_EXPERTS, num_local_experts=4),
    family("gemma3_text", causal, LM, "gemma3", sliding_window=8),
    family("glm4_moe", causal, LM, **_EXPERTS, n_routed_experts=4, moe_intermediate_size=32, first_k_dense_replace=1),
    family("glpn", functools.partial(image, 64), "AutoModelForDepthEstimation", depths=[1, 1, 1, 1],
           hidden_sizes=[8, 16, 24, 32], num_attention_heads=[1, 2, 2, 4], decoder_hidden_size=16),
    family("yolos", image, "AutoModelForObjectDetection", image_size=[SIDE, SIDE], num_detection_tokens=5),
    family("mgp-str", image, "MgpstrForSceneTextRecognition", image_size=[SIDE, SIDE], max_token_length=5,
           num_character_labels=10, num_bpe_labels=20, num_wordpiece_labels=20),
    family("sam", functools.partial(image, 64),
           prompt_encoder_config={**_SAM, "hidden_size": 16, "mask_input_channels": 4},
           vision_config={**_SAM, "hidden_size": 32, "num_hidden_layers": 2, "num_attention_heads": 4, "mlp_dim": 64,
                          "output_channels": 16, "window_size": 4, "global_attn_indexes": [1], "num_pos_feats": 8},
           mask_decoder_config={"hidden_size": 16, "mlp_dim": 32, "num_attention_heads": 2,
                                "iou_head_hidden_dim": 16}),
    family("pixtral", image, "PixtralVisionModel"),
    family("speecht5", sound_and_spectrogram, "SpeechT5ForSpeechToSpeech", **_SOUND, encoder_layers=2,
           decoder_layers=2, encoder_attention_heads=4, decoder_attention_heads=4, encoder_ffn_dim=64,
           decoder_ffn_dim=64, num_mel_bins=16, speech_decoder_prenet_units=16, speech_decoder_prenet_dropout=0.0,
           speech_decoder_postnet_units=16, speaker_embedding_dim=0),
    family("musicgen", text_and_codes, "MusicgenForConditionalGeneration",
           text_encoder={"model_type": "t5", "vocab_size": VOCABULARY, "d_model": 32, "d_kv": 8, "d_ff": 64,
                         "num_layers": 2, "num_heads": 4},
           audio_encoder={"model_type": "encodec", "hidden_size": 16, "num_filters": 4, "codebook_size": 32,
                          "codebook_dim": 16, "target_bandwidths": [1.5]},
           decoder={"model_type": "musicgen_decoder", "vocab_size": 32, "hidden_size": 32, "num_hidden_layers": 2,
                    "num_attention_heads": 4, "ffn_dim": 64, "num_codebooks": 2, "max_position_embeddings": 64,
                    "use_cache": False, "pad_token_id": 32, "bos_token_id": 32}),
]  # fmt: skip
