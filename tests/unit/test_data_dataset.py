"""Data sets in memory: layouts, types and labels that are taken, and what is said to those that are not."""

import numpy as np
import pytest
import torch

from orbitune.data import ImageDataset, from_arrays
from orbitune.errors import DataError, InputError

N, H, W = 12, 6, 5
LABELS = np.arange(N) % 3


def noise(*shape: int) -> np.ndarray:
    return np.random.default_rng(0).integers(256, size=shape, dtype=np.uint8)


GREY, COLOUR = noise(N, H, W), noise(N, H, W, 3)


@pytest.mark.parametrize(
    ("x", "expected"),
    [
        (GREY, GREY[:, None]),
        (GREY[..., None], GREY[:, None]),
        (GREY[:, None], GREY[:, None]),
        (COLOUR, np.moveaxis(COLOUR, 3, 1)),
        (np.moveaxis(COLOUR, 3, 1), np.moveaxis(COLOUR, 3, 1)),
        (COLOUR.astype(np.int64), np.moveaxis(COLOUR, 3, 1)),
        (GREY.astype(">u2"), GREY[:, None]),
        (GREY[::-1], GREY[::-1, None]),
    ],
)
@pytest.mark.parametrize("as_torch", [False, True])
def test_every_layout_becomes_bytes_with_channels_first(x, expected, as_torch):
    if as_torch:
        x = torch.from_numpy(np.ascontiguousarray(x.astype(x.dtype.newbyteorder("="))).astype(np.int64))
    dataset = from_arrays(x, LABELS)
    assert dataset.x_train.dtype == torch.uint8
    np.testing.assert_array_equal(dataset.x_train.numpy(), expected)
    assert dataset.image_shape == expected.shape[1:]


@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64])
def test_floats_stay_floats_and_bytes_are_divided_by_255(dtype):
    x = (GREY / 255).astype(dtype)
    dataset = from_arrays(x, LABELS)
    assert dataset.images().dtype == torch.float32
    np.testing.assert_array_equal(dataset.images()[:, 0].numpy(), x.astype(np.float32))
    np.testing.assert_allclose(from_arrays(GREY, LABELS).images()[:, 0].numpy(), GREY / 255, rtol=1e-6)


def test_booleans_are_black_and_white():
    assert set(from_arrays(GREY > 100, LABELS).images().unique().tolist()) == {0.0, 1.0}


def test_read_only_memory_is_copied_and_tensors_lose_their_gradient():
    frozen = GREY.copy()
    frozen.flags.writeable = False
    assert from_arrays(frozen, LABELS).num_train == N
    x = torch.rand(N, 1, H, W, dtype=torch.bfloat16).requires_grad_()
    assert not from_arrays(x, torch.from_numpy(LABELS)).images().requires_grad


@pytest.mark.parametrize(
    ("labels", "names"),
    [
        (LABELS, ("0", "1", "2")),
        (LABELS[:, None], ("0", "1", "2")),
        (LABELS.astype(np.float32), ("0", "1", "2")),
        (LABELS * 10 - 10, ("-10", "0", "10")),
        (np.array(["ant", "bee", "cat"])[LABELS], ("ant", "bee", "cat")),
        (np.array([b"ant", b"bee", b"cat"])[LABELS], ("ant", "bee", "cat")),
        (np.array(["ant", "bee", "cat"], dtype=object)[LABELS], ("ant", "bee", "cat")),
        (["abc"[i] for i in LABELS], ("a", "b", "c")),
        (torch.from_numpy(LABELS), ("0", "1", "2")),
    ],
)
def test_labels_of_any_kind_become_indices(labels, names):
    dataset = from_arrays(GREY, labels)
    assert dataset.class_names == names
    assert dataset.y_train.tolist() == LABELS.tolist()


def test_given_class_names_are_indexed_or_looked_up():
    names = ["no", "maybe", "yes", "never seen"]
    by_index = from_arrays(GREY, LABELS, GREY[:2], [3, 0], class_names=names)
    by_name = from_arrays(GREY, np.array(names)[LABELS], GREY[:2], ["never seen", "no"], class_names=names)
    assert by_index.class_names == by_name.class_names == tuple(names)
    assert by_index.y_train.tolist() == by_name.y_train.tolist() == LABELS.tolist()
    assert by_index.labels("test").tolist() == by_name.labels("test").tolist() == [3, 0]


WITH_NAN = np.where(np.arange(N)[:, None, None] == 4, np.nan, GREY / 255)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (dict(x=WITH_NAN), "1 of 12 images contain NaN"),
        (dict(x=GREY.astype(np.float32)), "range from 0 to 25[0-9].* uint8, or divide them by 255"),
        (dict(x=GREY / 127.5 - 1), "range from -1 to .* must lie in"),
        (dict(x=GREY.astype(np.int64) * 2), "0 … 255, got 0 … 5"),
        (dict(x=(GREY > 99).astype(np.uint8)), "the largest is 1.*pass booleans or floats"),
        (dict(x=GREY.reshape(N, -1)), r"got \(12, 30\). Flat images: x.reshape"),
        (dict(x=GREY.astype(str)), "must be integers, floats or booleans, got an array of <U3"),
        (dict(x=noise(N, 3, H, 3)), "cannot tell which axis .* both have"),
        (dict(x=noise(N, 7, H, 9)), "neither axis 1 nor axis 3 has length 1, 3 or 4"),
        (dict(x=GREY[:0], y=LABELS[:0]), "there are no images"),
        (dict(y=LABELS[:5]), "one int64 label for each of 12 images"),
        (dict(y=np.zeros(N)), "all 12 training images have the class '0'; expected at least two classes"),
        (dict(y=np.zeros(N), class_names=["a", "b"]), "all 12 training images have the class 'a'"),
        (dict(y=np.eye(3)[LABELS]), "One-hot labels: y.argmax"),
        (dict(y=np.where(LABELS == 0, np.nan, LABELS)), "4 labels are NaN"),
        (dict(y=LABELS + 0.5), "fractions such as 0.5"),
        (dict(y=[None, *LABELS[1:]]), "integers or strings, got an array of object"),
        (dict(y=LABELS + 1, class_names=["a", "b", "c"]), "labels 3 are not among the classes, which are 0, 1, 2"),
        (dict(y_test=LABELS[:2]), "got y_test without x_test"),
        (dict(x_test=GREY[:2]), "got x_test without y_test"),
        (dict(x_test=GREY[:2], y_test=[0, 7]), "test: labels 7 are not among the classes, which are 0, 1, 2"),
        (dict(x_test=GREY[:2], y_test=["a", "b"]), "test: labels 'a', 'b' are not among"),
        (dict(x_test=noise(2, H, W + 1), y_test=[0, 1]), r"test images of shape \(1, 6, 6\)"),
        (dict(class_names=["a", "b", "b"]), "different class names"),
    ],
)
def test_bad_input_is_explained(arguments, message):
    with pytest.raises(DataError, match=message):
        from_arrays(**{"x": GREY, "y": LABELS, **arguments})


def test_an_ambiguous_layout_can_be_told():
    x = noise(N, 3, 8, 3)
    assert from_arrays(x, LABELS, layout="NCHW").image_shape == (3, 8, 3)
    assert from_arrays(x, LABELS, layout="NHWC").image_shape == (3, 3, 8)


def test_tensors_of_the_wrong_type_are_sent_to_from_arrays():
    x, y = torch.rand(4, 1, 3, 3), torch.tensor([0, 1, 0, 1])
    with pytest.raises(DataError, match="from_arrays converts"):
        ImageDataset("mine", x.double(), y, None, None, ("a", "b"))
    with pytest.raises(DataError, match="0 … 1, got 0 … 2"):
        ImageDataset("mine", x, y * 2, None, None, ("a", "b"))


# ------------------------------------------------------------------------------------------------------ what it offers


@pytest.fixture
def uneven() -> ImageDataset:
    """Classes of 2, 10 and 20 images; the first pixel of an image is its number."""
    x = np.arange(32, dtype=np.uint8)[:, None, None] * np.ones((1, 4, 4), dtype=np.uint8)
    y = [0] * 2 + [1] * 10 + [2] * 20
    return from_arrays(x, y, x, y, name="uneven", note="made up")


@pytest.mark.parametrize(("num", "counts"), [(3, [1, 1, 1]), (6, [2, 2, 2]), (12, [2, 5, 5]), (30, [2, 10, 18])])
def test_a_subset_is_as_balanced_as_can_be(uneven, generator, num, counts):
    subset = uneven.subset(num, generator)
    assert subset.y_train.bincount().tolist() == counts
    numbers = subset.x_train[:, 0, 0, 0].long()
    assert numbers.tolist() == sorted(set(numbers.tolist()))
    assert (uneven.y_train[numbers] == subset.y_train).all()
    assert subset.num_test == 32 and subset.note == "made up"


def test_a_subset_is_random_and_repeatable(uneven):
    def draw(seed):
        return uneven.subset(12, torch.Generator().manual_seed(seed), num_test=6)

    assert torch.equal(draw(1).x_train, draw(1).x_train) and torch.equal(draw(1).x_test, draw(1).x_test)
    assert not torch.equal(draw(1).x_train, draw(2).x_train)
    assert draw(1).labels("test").bincount().tolist() == [2, 2, 2]


def test_the_remainder_of_a_subset_goes_to_random_classes():
    even = from_arrays(GREY, LABELS)
    counts = {tuple(even.subset(4, torch.Generator().manual_seed(s)).y_train.bincount().tolist()) for s in range(30)}
    assert counts == {(2, 1, 1), (1, 2, 1), (1, 1, 2)}


@pytest.mark.parametrize("num", [0, 2, 33])
def test_impossible_subsets_are_explained(uneven, num):
    with pytest.raises(DataError, match="3 … 32"):
        uneven.subset(num)


def test_images_and_labels_can_be_indexed(uneven):
    index = torch.tensor([5, 0, 31])
    assert torch.equal(uneven.images("train", index), uneven.images()[index])
    assert uneven.labels("test", index).tolist() == [1, 0, 2]
    assert len(uneven.images("test", slice(0, 7))) == 7


def test_without_a_test_set(uneven):
    dataset = from_arrays(GREY, LABELS)
    assert dataset.num_test == 0
    with pytest.raises(DataError, match="has no test images"):
        dataset.images("test")
    with pytest.raises(DataError, match="has no test images"):
        dataset.subset(3, num_test=3)


def test_resizing_keeps_types_and_range(uneven):
    small = from_arrays(noise(N, 8, 12), LABELS, noise(2, 8, 12) / 255, [0, 1]).resized(4, 6)
    assert small.image_shape == (1, 4, 6)
    assert (small.x_train.dtype, small.x_test.dtype) == (torch.uint8, torch.float32)
    assert torch.equal(uneven.resized(8, 8).x_train[:, 0, 3, 3], uneven.x_train[:, 0, 0, 0])


def test_it_shows_itself_in_a_line(uneven):
    assert repr(uneven) == "ImageDataset('uneven': 32 train, 32 test images of 1×4×4, 3 classes; made up)"


def test_data_errors_are_input_errors_and_value_errors():
    assert issubclass(DataError, InputError) and issubclass(DataError, ValueError)
