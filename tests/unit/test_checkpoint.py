"""One file, atomically."""

import errno

import pytest
import torch
from safetensors.torch import load_file

import orbitune.training.checkpoint as checkpoint
from orbitune.errors import CheckpointError
from orbitune.training import load_state, save_state

STATE = {
    "weights": {"a.b": torch.arange(6.0).reshape(2, 3), "empty": torch.zeros(0)},
    "optimiser": {"state": {0: {"step": torch.tensor(3.0)}, 1: {}}, "param_groups": [{"lr": 0.1, "params": [0, 1]}]},
    "bytes": torch.arange(5, dtype=torch.uint8),
    "position": ["phase", 3],
    "nothing": None,
}


def test_nested_state_comes_back_as_it_was(tmp_path):
    save_state(tmp_path / "s.safetensors", STATE)
    loaded = load_state(tmp_path / "s.safetensors")
    assert loaded.pop("position") == ["phase", 3]
    assert loaded.pop("nothing") is None
    torch.testing.assert_close(loaded, {key: STATE[key] for key in loaded}, rtol=0, atol=0)
    assert set(loaded["optimiser"]["state"]) == {0, 1}
    assert list(tmp_path.iterdir()) == [tmp_path / "s.safetensors"]


def test_tensors_that_share_memory_are_saved_each(tmp_path):
    tensor = torch.arange(4.0)
    save_state(tmp_path / "s.safetensors", {"whole": tensor, "part": tensor[:2], "again": tensor})
    loaded = load_state(tmp_path / "s.safetensors")
    assert torch.equal(loaded["part"], tensor[:2]) and torch.equal(loaded["again"], tensor)


def test_layouts_come_back_and_the_file_is_an_ordinary_one(tmp_path):
    weight = torch.arange(360.0).reshape(3, 4, 5, 6)
    layouts = {
        "contiguous": weight,
        "channels last": weight.to(memory_format=torch.channels_last),
        "permuted": weight.permute(2, 0, 3, 1),
        "transposed": weight[0, 0].mT,
        "scalar": torch.tensor(1.0),
    }
    save_state(tmp_path / "s.safetensors", layouts)
    loaded, plain = load_state(tmp_path / "s.safetensors"), load_file(tmp_path / "s.safetensors")
    for name, tensor in layouts.items():
        assert torch.equal(loaded[name], tensor) and loaded[name].stride() == tensor.stride()
        assert torch.equal(plain[f"state.{name}"], tensor)


@pytest.mark.parametrize("where", ["write", "fsync"])
def test_a_full_disk_leaves_the_last_state_intact_and_says_so(tmp_path, monkeypatch, where):
    path = tmp_path / "s.safetensors"
    save_state(path, {"x": torch.ones(2)})

    def full(*args, **kwargs):
        raise OSError(errno.ENOSPC, "No space left on device")

    if where == "write":
        monkeypatch.setattr(checkpoint, "save_file", full)
    else:
        monkeypatch.setattr(checkpoint.os, "fsync", full)
    with pytest.raises(CheckpointError, match=r"No space left on device.*intact.*[Ff]ree some disk space"):
        save_state(path, {"x": torch.zeros(2)})
    assert torch.equal(load_state(path)["x"], torch.ones(2))
    assert list(tmp_path.iterdir()) == [path]


@pytest.mark.parametrize("content", [b"", b"garbage", b"\x10\x00\x00\x00\x00\x00\x00\x00{}"])
def test_a_damaged_file_is_an_error_that_names_it(tmp_path, content):
    path = tmp_path / "s.safetensors"
    path.write_bytes(content)
    with pytest.raises(CheckpointError, match=r"s\.safetensors"):
        load_state(path)


def test_a_missing_file_is_an_error_that_names_it(tmp_path):
    with pytest.raises(CheckpointError, match=r"no saved state at .*nowhere"):
        load_state(tmp_path / "nowhere")
