"""The learned augmentation as code for other libraries: every generated file that can run is run, pixel by pixel."""

import json
import os
import sys

import numpy as np
import pytest
import torch

from orbitune.errors import ExportError, InputError
from orbitune.export import LIBRARIES, augmentation_difference, describe_augmentation, render_augmentation
from orbitune.export.agreement import run_file
from orbitune.export.augmentation import EXAMPLE
from orbitune.orbits import AffineOrbit, IdentityOrbit
from orbitune.orbits.affine import pull_back
from orbitune.orbits.warp import Padding

os.environ["NO_ALBUMENTATIONS_UPDATE"] = "1"  # it would ask the network for its latest version

WIDE = {
    "rotation": (-3.0, 2.5),
    "log_scale_x": (-0.4, 0.3),
    "log_scale_y": (-0.2, 0.5),
    "shear_x": (-0.4, 0.5),
    "shear_y": (-0.5, 0.3),
    "translate_x": (-0.5, 0.6),
    "translate_y": (-0.7, 0.4),
}
PADDINGS = Padding.__args__
SHAPES = [(1, 28, 28), (3, 33, 47)]
TOLERANCE = {"torch": 0.0, "torchvision": 0.0, "kornia": 5e-5, "albumentations": 5e-5}


def importable(library):
    """The library, or a skip that says why; OpenCV's version decides how well Albumentations can do."""
    module = pytest.importorskip(library, reason=f"{library} is not installed", exc_type=ImportError)
    if library == "albumentations" and int(pytest.importorskip("cv2").__version__.split(".")[0]) < 5:
        return module, 0.05  # positions are rounded to 1/32 of a pixel
    return module, TOLERANCE[library]


def module_for(library, **options):
    importable(library)
    return run_file(render_augmentation(AffineOrbit(options.pop("ranges", WIDE), **options), library), library)


@pytest.mark.parametrize("shape", SHAPES, ids=str)
@pytest.mark.parametrize("padding", PADDINGS)
@pytest.mark.parametrize("library", LIBRARIES)
def test_the_generated_file_warps_as_the_orbit_does(library, padding, shape, generator):
    _, tolerance = importable(library)
    images = torch.rand(12, *shape, generator=generator)
    assert augmentation_difference(AffineOrbit(WIDE, padding=padding), library, images, generator) <= tolerance


@pytest.mark.parametrize("library", LIBRARIES)
def test_generated_files_compile_and_carry_ranges_and_convention(library):
    text = render_augmentation(AffineOrbit({"rotation": (-0.25, 1.5)}, padding="border"), library)
    compile(text, library, "exec")
    assert '"rotation": (-0.25, 1.5),  # rad' in text
    assert 'PADDING = "border"' in text
    assert "positive turns the content counter-clockwise" in text
    assert "Float[" not in text and "import orbitune" not in text and "from orbitune" not in text


def test_the_torchvision_file_is_the_torch_file_in_another_wrapping():
    """What only needs torch is the same text, so that running the torch file tests it where torchvision is missing."""
    cores = [
        render_augmentation(AffineOrbit(WIDE), library).split("RANGES = {")[1].split("class LearnedAugmentation")[0]
        for library in ("torch", "torchvision")
    ]
    assert cores[0] == cores[1] and "class AffineWarp" in cores[0]


def test_torch_draws_uniformly_from_the_ranges_one_vector_per_image(generator):
    augment = module_for("torch").LearnedAugmentation()
    params = augment.sample_params(4000, generator)
    low, high = torch.tensor(list(WIDE.values())).unbind(-1)
    assert (params >= low).all() and (params <= high).all()
    unit = (params - low) / (high - low)
    torch.testing.assert_close(unit.mean(0), torch.full((7,), 0.5), atol=4 * (1 / 12 / 4000) ** 0.5, rtol=0)
    torch.testing.assert_close(unit.var(0), torch.full((7,), 1 / 12), atol=0.005, rtol=0)


@pytest.mark.parametrize("leading", [(), (4,), (2, 3)])
def test_torch_takes_any_leading_axes_and_repeats_itself_with_a_generator(leading, generator):
    augment = module_for("torch").LearnedAugmentation()
    images = torch.rand(*leading, 2, 9, 8, generator=generator)
    first, second, other = (augment(images, torch.Generator().manual_seed(seed)) for seed in (1, 1, 2))
    assert first.shape == images.shape
    assert torch.equal(first, second) and not torch.equal(first, other)


def test_torch_at_zero_ranges_is_the_identity_to_the_bit(generator):
    ranges = dict.fromkeys(AffineOrbit.names, (0.0, 0.0))
    images = torch.rand(3, 1, 13, 17, generator=generator)
    assert torch.equal(module_for("torch", ranges=ranges).LearnedAugmentation()(images), images)


def test_torch_refuses_bytes_and_unknown_paddings(generator):
    module = module_for("torch")
    with pytest.raises(TypeError, match=r"float\(\) / 255"):
        module.LearnedAugmentation()(torch.zeros(1, 8, 8, dtype=torch.uint8))
    with pytest.raises(ValueError, match="reflection"):
        module.LearnedAugmentation(padding="wrap")(torch.rand(1, 8, 8))


def test_kornia_moves_masks_and_keypoints_with_the_image(generator):
    kornia, _ = importable("kornia")
    module = module_for("kornia", ranges={"translate_x": (0.5, 0.5)}, learn=())
    images = torch.zeros(2, 1, 8, 8)
    images[:, :, 3, 1] = 1
    sequence = kornia.augmentation.AugmentationSequential(
        module.LearnedAugmentation(), data_keys=["input", "mask", "keypoints"]
    )
    warped, mask, keypoints = sequence(images, images.clone(), torch.tensor([[[1.0, 3.0]], [[1.0, 3.0]]]))
    expected = torch.zeros(2, 1, 8, 8)
    expected[:, :, 3, 3] = 1  # half of half the width: two pixels to the right
    torch.testing.assert_close(warped, expected, atol=1e-5, rtol=0)
    torch.testing.assert_close(mask, expected)
    torch.testing.assert_close(keypoints, torch.tensor([[[3.0, 3.0]], [[3.0, 3.0]]]))


def test_kornia_draws_anew_for_every_image_or_once_for_the_batch():
    module = module_for("kornia")
    low, high = torch.tensor(list(WIDE.values())).unbind(-1)
    for same in (False, True):
        drawn = module.LearnedAugmentation(same_on_batch=same).forward_parameters(torch.Size((50, 1, 8, 8)))
        params = torch.stack([drawn[name] for name in AffineOrbit.names], dim=-1)
        assert params.shape == (50, 7) and (params >= low).all() and (params <= high).all()
        assert len(params.unique(dim=0)) == (1 if same else 50)


@pytest.mark.parametrize("shape", [(20, 21), (20, 21, 1), (20, 21, 3), (20, 21, 6)], ids=str)
def test_albumentations_rounds_bytes_once_and_keeps_shape_and_type(shape):
    importable("albumentations")
    augment = module_for("albumentations").LearnedAugmentation()
    rng = np.random.default_rng(0)
    image, params = rng.integers(0, 256, shape, dtype=np.uint8), rng.uniform(*np.array(list(WIDE.values())).T)
    as_bytes = augment.apply(image, params=params)
    assert as_bytes.shape == shape and as_bytes.dtype == np.uint8
    for dtype in (np.float32, np.float64):
        as_floats = augment.apply(image.astype(dtype), params=params)
        assert as_floats.dtype == dtype
        np.testing.assert_array_equal(as_bytes, np.rint(as_floats))


def test_albumentations_composes_repeats_with_a_seed_and_moves_masks():
    A, _ = importable("albumentations")
    module = module_for("albumentations")
    image = np.random.default_rng(0).random((20, 21, 3), dtype=np.float32)
    mask = (image[..., 0] > 0.5).astype(np.uint8)
    first, second, other = (
        A.Compose([module.LearnedAugmentation()], seed=seed)(image=image, mask=mask) for seed in (1, 1, 2)
    )
    np.testing.assert_array_equal(first["image"], second["image"])
    assert not np.array_equal(first["image"], other["image"])
    assert set(np.unique(first["mask"])) <= {0, 1} and not np.array_equal(first["mask"], mask)


def test_albumentations_does_not_leave_boxes_behind():
    A, _ = importable("albumentations")
    boxes = A.BboxParams(format="pascal_voc", label_fields=["labels"])
    transform = A.Compose([module_for("albumentations").LearnedAugmentation()], bbox_params=boxes)
    with pytest.raises(NotImplementedError, match="LearnedAugmentation"):
        transform(image=np.zeros((20, 21, 3), np.float32), bboxes=[[1, 2, 5, 6]], labels=[0])


def test_the_description_is_json_and_its_example_is_the_convention():
    orbit = AffineOrbit(WIDE, padding="reflection")
    record = json.loads(json.dumps(describe_augmentation(orbit, (3, 20, 30))))
    ranges = {parameter["name"]: (parameter["low"], parameter["high"]) for parameter in record["parameters"]}
    assert ranges == orbit.ranges() and record["padding"] == "reflection"
    assert "counter-clockwise" in record["convention"]["parameters"]
    assert "from the image centre" in record["convention"]["warp"]
    example = record["example"]
    params = torch.tensor([[list(example["parameters"].values())]], dtype=torch.float64)
    expected = pull_back(params, example["height"], example["width"])[0, 0]
    torch.testing.assert_close(torch.tensor(example["pull_back"], dtype=torch.float64), expected)
    assert list(EXAMPLE) == list(AffineOrbit.names) and all(EXAMPLE.values())


def test_the_order_of_the_description_gives_its_matrix():
    """The forward map, put together from ``order`` as a reader of the JSON would."""
    record = describe_augmentation(AffineOrbit(), (1, 20, 30))
    nu, height, width = record["example"]["parameters"], 20, 30
    cos, sin = np.cos(nu["rotation"]), np.sin(nu["rotation"])
    factors = {
        "scale": np.diag([np.exp(nu["log_scale_x"]), np.exp(nu["log_scale_y"]), 1]),
        "shear_y": np.array([[1, 0, 0], [nu["shear_y"], 1, 0], [0, 0, 1]]),
        "shear_x": np.array([[1, nu["shear_x"], 0], [0, 1, 0], [0, 0, 1]]),
        "rotation": np.array([[cos, sin, 0], [-sin, cos, 0], [0, 0, 1]]),
        "translation": np.array(
            [[1, 0, nu["translate_x"] * width / 2], [0, 1, nu["translate_y"] * height / 2], [0, 0, 1]]
        ),
    }
    forward = np.eye(3)
    for name in record["order"]:
        forward = factors[name] @ forward
    np.testing.assert_allclose(np.linalg.inv(forward)[:2], record["example"]["pull_back"], atol=1e-12)


@pytest.mark.parametrize("library", LIBRARIES)
def test_an_orbit_that_is_not_affine_is_refused(library):
    with pytest.raises(InputError, match="IdentityOrbit"):
        render_augmentation(IdentityOrbit(), library)


def test_an_unknown_library_is_answered_with_the_known_ones():
    with pytest.raises(InputError, match="albumentations, kornia, torch, torchvision"):
        render_augmentation(AffineOrbit(), "imgaug")


def test_a_missing_library_is_answered_with_how_to_get_it(monkeypatch, generator):
    monkeypatch.setitem(sys.modules, "kornia", None)
    with pytest.raises(ExportError, match=r"pip install 'orbitune\[kornia\]'"):
        augmentation_difference(AffineOrbit(), "kornia", torch.rand(1, 1, 8, 8), generator)
