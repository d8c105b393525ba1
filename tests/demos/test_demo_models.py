"""The voice and face demos on the CPU: their networks, for the weights of other packages, and their other functions."""

from __future__ import annotations

import warnings
import wave
from pathlib import Path

import numpy as np
import pytest
import torch
import typer
from PIL import Image

DEMOS = Path(__file__).parents[2] / "demos"


@pytest.fixture
def voice(monkeypatch):
    monkeypatch.syspath_prepend(str(DEMOS))
    import voice_activity

    return voice_activity


@pytest.fixture
def faces(monkeypatch):
    monkeypatch.syspath_prepend(str(DEMOS))
    import face_detection

    return face_detection


def test_voice_network_is_that_of_the_package(voice):
    """With the weights of the package's TorchScript file, our network computes the same as this file.

    The package's .safetensors file has other weights.
    """
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # PyTorch will drop TorchScript
        theirs = torch.jit.load(voice.installed("silero_vad") / "data" / "silero_vad.jit").eval()
    ours = voice.Silero().eval()
    ours.load_state_dict(dict(zip(ours.state_dict(), theirs._model.state_dict().values(), strict=True)))
    sound = voice.sample_sound()
    with torch.no_grad():
        expected = theirs.audio_forward(sound[None], voice.RATE)[0]
    torch.testing.assert_close(voice.probabilities(ours, sound), expected, rtol=0, atol=1e-5)
    spoken = voice.speech(voice.probabilities(voice.load_model(), sound))
    assert np.array(spoken) == pytest.approx(np.array([[1.0, 1.95], [4.9, 5.9]]), abs=0.1)


@pytest.mark.parametrize("width", [1, 2, 3, 4])
def test_sounds_of_all_widths(voice, tmp_path, width):
    """A stereo file of any width is read as the mean of its channels. The samples in the file are rounded integers."""
    left, right = 0.9 * torch.sin(torch.arange(999) / 7), 0.5 * torch.cos(torch.arange(999) / 3)
    scale, middle = 2 ** (8 * width - 1), 128 if width == 1 else 0
    integers = (torch.stack([left, right], 1).double() * scale).round().long() + middle
    data = b"".join(int(i).to_bytes(width, "little", signed=width > 1) for i in integers.flatten())
    with wave.open(str(tmp_path / "a.wav"), "wb") as file:
        file.setparams((2, width, voice.RATE, 0, "NONE", ""))
        file.writeframes(data)
    read = voice.read_sound(tmp_path / "a.wav")
    torch.testing.assert_close(read, (left + right) / 2, rtol=0, atol=0.5 / scale + 1e-6)


def test_sounds_of_other_rates(voice, tmp_path):
    """A tone of 440 Hz that is recorded with 44100 samples a second still has 440 Hz.

    A file without samples is an error.
    """
    for name, count in (("tone.wav", 44100), ("none.wav", 0)):
        with wave.open(str(tmp_path / name), "wb") as file:
            file.setparams((1, 2, 44100, 0, "NONE", ""))
            tone = 20000 * np.sin(2 * np.pi * 440 * np.arange(count) / 44100)
            file.writeframes(tone.astype("<i2").tobytes())
    sound = voice.read_sound(tmp_path / "tone.wav")
    assert len(sound) == voice.RATE and torch.fft.rfft(sound).abs().argmax() == 440
    with pytest.raises(typer.BadParameter, match="has no samples"):
        voice.read_sound(tmp_path / "none.wav")


def test_speech_survives_short_pauses(voice):
    begin, pause = [0.9] * 8, [0.1] * (voice.PAUSE - 1)
    seconds = voice.CHUNK / voice.RATE
    assert voice.speech(torch.tensor(begin + pause + begin)) == [(0.0, (16 + len(pause)) * seconds)]
    assert len(voice.speech(torch.tensor(begin + pause + [0.1] + begin))) == 2
    assert voice.speech(torch.tensor([0.9] * (voice.SHORTEST - 1) + [0.0] * 9)) == []


def test_faces_of_two_sizes(faces):
    """A face that the picture shows in two sizes is found twice.

    In both faces, the eyes are above the nose, and the nose is above the mouth.
    """
    networks = [faces.proposal_network(), faces.refining_network(), faces.output_network()]
    portrait = faces.read_images([], ("astronaut.png",))["astronaut.png"].crop((120, 20, 330, 230))
    both = Image.new("RGB", (400, 220))
    both.paste(portrait, (0, 5))
    both.paste(portrait.resize((140, 140)), (240, 40))
    with torch.no_grad():
        found = faces.detect(networks, both, 40)
        nothing = faces.detect(networks, Image.new("RGB", (60, 50), (200, 30, 30)), 12)
    large, small = found.boxes[found.boxes[:, 0].argsort()]
    assert large.tolist() == pytest.approx([58, 41, 148, 160], abs=8)
    assert small.tolist() == pytest.approx([240 + 39, 40 + 24, 240 + 99, 40 + 104], abs=8)
    eye, other_eye, nose, mouth, other_mouth = found.landmarks.unbind(1)
    assert (torch.maximum(eye, other_eye)[:, 1] < nose[:, 1]).all() and (nose[:, 1] < mouth[:, 1]).all()
    assert (eye[:, 0] < other_eye[:, 0]).all() and (mouth[:, 0] < other_mouth[:, 0]).all()
    assert len(nothing.boxes) == 0 and faces.same_faces(nothing, nothing, 0.99)
    assert not faces.same_faces(nothing, found, 0.5) and faces.same_faces(found, found, 0.99)


def test_best_boxes(faces):
    """If several boxes overlap much, only the most probable one stays. The order of the boxes does not matter."""
    boxes = torch.tensor([[0.0, 0, 10, 10], [1, 0, 11, 10], [30, 30, 40, 40], [2, 2, 5, 5]])
    scores = torch.tensor([0.7, 0.9, 0.8, 0.6])
    assert faces.best(boxes, scores, 0.5).tolist() == [1, 2, 3]
    assert faces.best(boxes, scores, 0.5, of_smaller=True).tolist() == [1, 2]
    assert faces.best(boxes[:0], scores[:0], 0.5).tolist() == []
