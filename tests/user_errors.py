"""Mistakes that users make, at every entry point, and the answer they get: run by tests, rendered as docs/errors.md."""

import json
import re
import shutil
import zipfile
from dataclasses import dataclass

import numpy as np
import torch
from PIL import Image

from orbitune.backbones import MLP
from orbitune.likelihoods import Softmax
from orbitune.network import OrbitNetwork
from orbitune.orbits import AffineOrbit
from orbitune.saving import save_model

INTRODUCTION = """\
# Errors

Rendered by `python scripts/render_errors.py` from `tests/user_mistakes.py`, whose cases the tests run: do not edit.

A mistake on the command line gets a sentence on standard error, and no traceback. The exit code is 2 for a mistake in
what was asked for, 1 if the system refuses (a full disk, a directory that cannot be made) or `orbitune doctor` finds
something broken, and 130 after Ctrl-C. In Python every error that Orbitune raises on purpose is an
`orbitune.errors.OrbituneError`, and a `ValueError` or a `RuntimeError` as well. In the app the sentence stands on the
page; its status is that of the HTTP answer. `…` stands for the current directory. Answers in italics are those of
typer and scikit-learn, whose words may change with their versions."""


@dataclass(frozen=True)
class Mistake:
    """What is typed, and the answer; ``code`` is the exit code, the status of HTTP in the app, None in Python.

    An answer of typer's or scikit-learn's (not ``ours``) may be worded otherwise in another version of theirs.
    """

    call: str
    answer: str
    code: int | None = None
    ours: bool = True

    def is_answered_by(self, text):
        """Word for word; or, if the words are not ours, with all names and numbers that they quote."""
        if self.ours:
            return text == self.answer
        quoted = re.findall(r"'([^']+)'|(--\w+|NaN|\d+)", self.answer)
        return bool(quoted) and all((name or number).lower() in text.lower() for name, number in quoted)


def make_files(folder):
    """What the mistakes are about: broken images, arrays and configurations, and a finished run."""
    grey = np.zeros((8, 8), np.uint8)
    for path, pixels in {
        "one-class/cat/a.png": grey,
        "sizes/cat/a.png": grey,
        "sizes/dog/b.png": np.zeros((9, 8), np.uint8),
        "broken/cat/a.png": grey,
        "empty/cat/a.png": grey,
        "coloured/a.png": np.zeros((8, 8, 3), np.uint8),
        "large/cat/a.png": np.full((12, 12), 128, np.uint8),
        "large/dog/b.png": np.full((12, 12), 128, np.uint8),
    }.items():
        (folder / path).parent.mkdir(parents=True, exist_ok=True)
        Image.fromarray(pixels).save(folder / path)
    (folder / "broken" / "dog").mkdir()
    (folder / "broken" / "dog" / "b.png").write_text("no picture")
    (folder / "empty" / "dog").mkdir()
    (folder / "notes.txt").write_text("")

    for name in ("one-class", "sizes", "broken"):
        shutil.make_archive(folder / name, "zip", folder / name)
    (folder / "notes.zip").write_text("no zip")
    for name, member in (("no-images.zip", "notes.txt"), ("outside.zip", "../cat/a.png")):
        with zipfile.ZipFile(folder / name, "w") as archive:
            archive.write(folder / "one-class" / "cat" / "a.png", member)

    x, y = np.full((6, 8, 8), 0.5, np.float32), np.arange(6) % 2
    holes, one_hot = np.where(np.arange(6)[:, None, None] == 1, np.nan, x).astype(np.float32), np.eye(2)[y]
    np.savez(folder / "good.npz", x_train=x, y_train=y)
    np.savez(folder / "unlabelled.npz", x_train=x)
    np.savez(folder / "holes.npz", x_train=holes, y_train=y)
    np.savez(folder / "standardised.npz", x_train=x + np.linspace(-2, 2, 6, dtype=np.float32)[:, None, None], y_train=y)
    np.savez(folder / "one-hot.npz", x_train=x, y_train=one_hot)
    np.savez(folder / "short.npz", x_train=x, y_train=y[:5])
    np.savez(folder / "one-class.npz", x_train=x, y_train=np.zeros(6, int))

    (folder / "typo.toml").write_text("lerner = 'crossfit'\n")
    (folder / "type.toml").write_text("seed = 'x'\n")
    (folder / "half.toml").write_text("[orbit.ranges]\nrotation = [1.0]\n")
    (folder / "folds.toml").write_text("[settings]\nfolds = 0\n")
    (folder / "rate.toml").write_text("[settings]\nnatural_rate = 2.0\n")
    (folder / "odd.toml").write_text("likelihood = 'gaussian'\n[settings]\norbit_size = 3\n")
    (folder / "word.toml").write_text("settings = 'fast'\n")
    (folder / "no.toml").write_text("= 3\n")

    orbit = AffineOrbit({"rotation": (-1.0, 1.0)})
    model = OrbitNetwork(orbit, MLP(64), torch.nn.Linear(50, 2), Softmax(2))
    names = {"class_names": ("0", "1"), "likelihood": "softmax", "backbone": "mlp"}
    for name in ("finished", "cut-short"):
        (folder / name).mkdir()
        save_model(folder / name, model, image_shape=(1, 8, 8), **names)
    result = {"ranges": {}, "test_accuracy": None, "plain_network_accuracy": None, "elbo_per_datum": None, "seconds": 1}
    (folder / "finished" / "result.json").write_text(json.dumps(result | {"config": {}}))
    for name in ("history.jsonl", "checkpoint.safetensors", "augmentation_torch.py"):
        (folder / "finished" / name).write_text("")
    weights = folder / "cut-short" / "model.safetensors"
    weights.write_bytes(weights.read_bytes()[:100])
    (folder / "unfinished").mkdir()
    (folder / "unfinished" / "config.toml").write_text("seed = 0\n")
    (folder / "results" / "fig1").mkdir(parents=True)
    (folder / "results" / "fig1" / "plain-seed0.json").write_text("{")
    (folder / "damaged").mkdir()
    (folder / "damaged" / "result.json").write_text(json.dumps({"seconds": 1.0}))


def render(mistakes):
    """The page, as Markdown."""
    parts = [INTRODUCTION]
    for section, cases in mistakes.items():
        kind = cases[0].code
        code = "" if kind is None else " exit code |" if kind < 100 else " status |"
        lines = [f"| you write | the answer |{code}", "|---|---|" + ("---|" if code else "")]
        for case in cases:
            cells = [
                f"`{case.call}`",
                case.answer if case.ours else f"*{case.answer}*",
                *([str(case.code)] if code else []),
            ]
            lines.append("| " + " | ".join(cell.replace("|", "\\|").replace("<", "&lt;") for cell in cells) + " |")
        parts.append(f"## {section}\n\n" + "\n".join(lines))
    return "\n\n".join(parts) + "\n"
