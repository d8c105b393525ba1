"""Networks of the diffusers package, which are the parts of image generators."""

from __future__ import annotations

import functools
from collections.abc import Callable

import diffusers
import torch
from torch import nn

from tt_torch.sweep.registry import Config, Inputs, Model, Setting

_BLOCKS = {"block_out_channels": (16, 32), "layers_per_block": 1, "norm_num_groups": 4}


def unet_inputs() -> Inputs:
    context = torch.randn(2, 8, 32)
    return {"sample": torch.randn(2, 4, 16, 16), "timestep": torch.tensor(10), "encoder_hidden_states": context}


def picture() -> Inputs:
    return {"sample": torch.randn(2, 3, 32, 32)}


def dit_inputs() -> Inputs:
    labels, steps = torch.tensor([1, 5]), torch.tensor([10, 20])
    return {"hidden_states": torch.randn(2, 4, 8, 8), "timestep": steps, "class_labels": labels}


def sd3_inputs() -> Inputs:
    pooled, step = torch.randn(1, 16), torch.tensor([10])
    text = {"encoder_hidden_states": torch.randn(1, 8, 32), "pooled_projections": pooled}
    return {"hidden_states": torch.randn(1, 4, 8, 8), "timestep": step, **text}


def flux_inputs() -> Inputs:
    text = {"encoder_hidden_states": torch.randn(1, 8, 32), "pooled_projections": torch.randn(1, 16)}
    places = {"img_ids": torch.zeros(16, 3), "txt_ids": torch.zeros(8, 3)}
    steps = {"timestep": torch.tensor([0.5]), "guidance": torch.tensor([3.5])}
    return {"hidden_states": torch.randn(1, 16, 16), **text, **places, **steps}


def wan_inputs() -> Inputs:
    video, context = torch.randn(1, 4, 2, 8, 8), torch.randn(1, 8, 32)
    return {"hidden_states": video, "timestep": torch.tensor([10]), "encoder_hidden_states": context}


def build(kind: str, inputs: Callable[[], Inputs], config: Config) -> tuple[nn.Module, Config]:
    return getattr(diffusers, kind)(**config).eval(), inputs()


def network(name: str, kind: str, inputs: Callable[[], Inputs], **config: Setting) -> Model:
    return Model(name, functools.partial(build, kind, inputs, config), "diffusers", config)


MODELS = [
    network("diffusers_unet2d_cond", "UNet2DConditionModel", unet_inputs, sample_size=16, cross_attention_dim=32,
            attention_head_dim=4, down_block_types=("CrossAttnDownBlock2D", "DownBlock2D"),
            up_block_types=("UpBlock2D", "CrossAttnUpBlock2D"), **_BLOCKS),
    network("diffusers_vae_kl", "AutoencoderKL", picture, latent_channels=4, sample_size=32,
            down_block_types=("DownEncoderBlock2D",) * 2, up_block_types=("UpDecoderBlock2D",) * 2, **_BLOCKS),
    network("diffusers_dit", "DiTTransformer2DModel", dit_inputs, num_attention_heads=2, attention_head_dim=16,
            in_channels=4, num_layers=2, sample_size=8, num_embeds_ada_norm=10, norm_num_groups=4),
    network("diffusers_sd3", "SD3Transformer2DModel", sd3_inputs, sample_size=8, patch_size=2, in_channels=4,
            num_layers=2, attention_head_dim=8, num_attention_heads=4, joint_attention_dim=32,
            caption_projection_dim=32, pooled_projection_dim=16, out_channels=4, pos_embed_max_size=8),
    network("diffusers_flux", "FluxTransformer2DModel", flux_inputs, in_channels=16, num_layers=1,
            num_single_layers=1, attention_head_dim=16, num_attention_heads=2, joint_attention_dim=32,
            pooled_projection_dim=16, axes_dims_rope=(4, 4, 8), guidance_embeds=True),
    network("diffusers_wan", "WanTransformer3DModel", wan_inputs, patch_size=(1, 2, 2), num_attention_heads=2,
            attention_head_dim=12, in_channels=4, out_channels=4, text_dim=32, freq_dim=16, ffn_dim=64,
            num_layers=2, cross_attn_norm=True, qk_norm="rms_norm_across_heads", rope_max_seq_len=32),
]  # fmt: skip
