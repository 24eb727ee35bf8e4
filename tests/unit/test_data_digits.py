"""The digits inside the package, and planting."""

import math

import numpy as np
import pytest
import torch

from orbitune.data import load_digits, plant, plant_dataset, rotated_digits
from orbitune.data.digits import DIGITS_FILE
from orbitune.errors import InputError


@pytest.fixture(scope="module")
def digits():
    return load_digits()


def test_the_shipped_digits_are_small_balanced_and_have_their_licence_beside_them(digits):
    assert DIGITS_FILE.stat().st_size < 1_300_000
    assert digits.image_shape == (1, 28, 28)
    assert digits.y_train.bincount().tolist() == [500] * 10
    assert digits.labels("test").bincount().tolist() == [100] * 10
    assert digits.class_names == tuple("0123456789")
    licence = DIGITS_FILE.with_name("DIGITS_LICENSE.md").read_text()
    assert all(word in licence for word in ("CC BY-SA 3.0", "LeCun", "Cortes", "Burges", "scripts/make_digits.py"))


def test_no_shipped_test_image_is_also_a_training_image(digits):
    train = {image.numpy().tobytes() for image in digits.x_train}
    assert len(train) == 5000
    assert not any(image.numpy().tobytes() in train for image in digits.x_test)


def test_nearest_class_mean_recognises_them(digits):
    means = torch.stack([digits.images()[digits.y_train == c].mean(0) for c in range(10)]).flatten(1)
    guess = torch.cdist(digits.images("test").flatten(1), means).argmin(1)
    assert (guess == digits.labels("test")).float().mean() > 0.75  # about 0.82 on MNIST


# ------------------------------------------------------------------------------------------------------------ planting


def test_nothing_planted_is_the_image_bit_for_bit(digits, generator):
    images = digits.images("train", slice(0, 300))
    assert torch.equal(plant(images, {}, generator), images)


def test_a_quarter_turn_is_numpys(digits, generator):
    images = digits.images("train", slice(0, 5))
    turned = plant(images, {"rotation": (math.pi / 2, math.pi / 2)}, generator)
    np.testing.assert_allclose(turned.numpy(), np.rot90(images.numpy(), axes=(2, 3)), atol=1e-5)


def test_every_image_gets_its_own_draw_from_the_whole_range(generator):
    """A bright column is shifted by ν half widths: its centre of mass tells ν."""
    images = torch.zeros(1000, 1, 3, 40)
    images[..., 19:21] = 1
    shifted = plant(images, {"translate_x": (-0.5, 0.25)}, generator)
    centre = (shifted.sum(2)[:, 0] * (torch.arange(40) - 19.5)).sum(1) / shifted.sum((1, 2, 3))
    shift = (centre / 20).sort().values
    expected = torch.linspace(-0.5, 0.25, 1000)
    assert (shift - expected).abs().max() < 0.05  # Kolmogorov distance of 1000 uniforms, times 0.75
    assert shift[0] >= -0.5001 and shift[-1] <= 0.2501


def test_planting_repeats_with_the_seed_whatever_the_default_dtype(digits):
    images = digits.images("train", slice(0, 20))

    def draw(seed):
        return plant(images, {"rotation": (-1.0, 1.0)}, torch.Generator().manual_seed(seed))

    first = draw(0)
    torch.set_default_dtype(torch.float64)
    try:
        assert torch.equal(draw(0), first)
    finally:
        torch.set_default_dtype(torch.float32)
    assert not torch.equal(draw(1), first)


def test_planting_stays_in_the_unit_interval_also_on_bright_images(generator):
    planted = plant(torch.ones(50, 3, 9, 7), {"rotation": (-3.0, 3.0), "shear_x": (-1.0, 1.0)}, generator)
    assert planted.min() == 0 and planted.max() == 1


def test_an_unknown_range_lists_the_known_ones(digits, generator):
    with pytest.raises(InputError, match="log_scale_x"):
        plant(digits.images("train", slice(0, 2)), {"zoom": (0.0, 1.0)}, generator)


def test_planting_a_data_set_leaves_labels_and_says_what_was_done(digits, generator):
    small = digits.subset(20, generator, num_test=10)
    planted = plant_dataset(small, {"rotation": (-0.5, 0.5), "translate_x": (0.0, 0.25)}, generator)
    assert torch.equal(planted.y_train, small.y_train) and torch.equal(planted.y_test, small.y_test)
    assert planted.note == "planted: rotation in [-0.5, 0.5], translate_x in [0, 0.25]"
    assert not torch.equal(planted.images("test"), small.images("test"))


def test_rotated_digits_are_the_digits_rotated(digits):
    rotated = rotated_digits(seed=1)
    assert (rotated.name, rotated.num_train, rotated.num_test) == ("rotated-digits", 5000, 1000)
    assert torch.equal(rotated.y_train, digits.y_train)
    # A turn about the centre moves little ink out of the image.
    ink, before = rotated.images("test").sum((1, 2, 3)), digits.images("test").sum((1, 2, 3))
    assert ((ink - before).abs() / before).median() < 0.02
    assert torch.equal(rotated_digits(0.0).images(), digits.images())
