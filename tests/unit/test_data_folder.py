"""Folders of images, as people have them."""

import logging

import numpy as np
import pytest
import torch
from PIL import Image

from orbitune.data import load_dataset, load_folder
from orbitune.data.folder import image_names, is_unsorted, load_images
from orbitune.errors import DataError


def save(path, colour=None, size=(7, 5), mode="L", **options):
    """An image of one colour; size is (width, height) as in Pillow."""
    path.parent.mkdir(parents=True, exist_ok=True)
    Image.new(mode, size, colour).save(path, **options)
    return path


@pytest.fixture
def folder(tmp_path):
    for i in range(3):
        save(tmp_path / "cats" / f"{i}.png", 10 + i)
        save(tmp_path / "dogs" / f"{i}.png", 20 + i)
    return tmp_path


def test_one_folder_per_class(folder):
    dataset = load_dataset(folder)
    assert dataset.class_names == ("cats", "dogs")
    assert dataset.image_shape == (1, 5, 7)
    assert dataset.x_train[:, 0, 0, 0].tolist() == [10, 11, 12, 20, 21, 22]
    assert dataset.y_train.tolist() == [0, 0, 0, 1, 1, 1]
    assert dataset.num_test == 0 and dataset.name == folder.name


def test_train_and_test(folder):
    for split in ("train", "test"):
        save(folder / "set" / split / "2" / "a.bmp", 1 if split == "train" else 3)
        save(folder / "set" / split / "10" / "deeper" / "b.TIF", 2 if split == "train" else 4)
    dataset = load_dataset(str(folder / "set"))
    assert dataset.class_names == ("2", "10")  # as numbers
    assert dataset.x_train[:, 0, 0, 0].tolist() == [1, 2]
    assert dataset.x_test[:, 0, 0, 0].tolist() == [3, 4]
    assert dataset.labels("test").tolist() == [0, 1]


def test_train_without_test(folder):
    for name in ("a", "b"):
        save(folder / "set" / "train" / name / "1.png", 9)
    assert load_folder(folder / "set").num_test == 0


@pytest.mark.parametrize("suffix", ["png", "jpg", "jpeg", "bmp", "tif", "tiff", "webp"])
def test_every_usual_format(tmp_path, suffix):
    for name, colour in (("a", (200, 0, 0)), ("b", (0, 0, 200))):
        save(tmp_path / name / f"1.{suffix}", colour, mode="RGB")
    red, blue = load_folder(tmp_path).images()[:, :, 2, 2]
    torch.testing.assert_close(red, torch.tensor([200 / 255, 0, 0]), atol=0.03, rtol=0)
    torch.testing.assert_close(blue, torch.tensor([0, 0, 200 / 255]), atol=0.03, rtol=0)


def test_grey_among_colour_becomes_colour(folder):
    save(folder / "cats" / "9.png", (1, 2, 3), mode="RGB")
    dataset = load_folder(folder)
    assert dataset.image_shape == (3, 5, 7)
    assert dataset.x_train[3, :, 0, 0].tolist() == [1, 2, 3]
    assert dataset.x_train[0, :, 0, 0].tolist() == [10, 10, 10]


@pytest.mark.parametrize(
    ("mode", "colour", "expected"),
    [
        ("1", 1, [255]),
        ("I;16", 257 * 77, [77]),
        ("I", 257 * 77, [77]),
        ("LA", (0, 0), [255]),  # transparent is white
        ("RGBA", (10, 20, 30, 255), [10, 20, 30]),
        ("RGBA", (10, 20, 30, 0), [255, 255, 255]),
        ("CMYK", (0, 0, 0, 0), [255, 255, 255]),
    ],
)
def test_other_depths_and_modes(tmp_path, mode, colour, expected):
    suffix = "tif" if mode in ("I", "CMYK") else "png"
    for name in ("a", "b"):
        save(tmp_path / name / f"1.{suffix}", colour, mode=mode)
    assert load_folder(tmp_path).x_train[0, :, 0, 0].tolist() == expected


def test_a_palette_gives_its_colours(tmp_path):
    for name in ("a", "b"):
        (tmp_path / name).mkdir()
        Image.new("RGB", (4, 4), (9, 8, 7)).convert("P", palette=Image.Palette.ADAPTIVE).save(tmp_path / name / "1.png")
    assert load_folder(tmp_path).x_train[0, :, 0, 0].tolist() == [9, 8, 7]


def test_the_camera_knows_which_side_is_up(tmp_path):
    exif = Image.Exif()
    exif[0x0112] = 6  # a quarter turn
    for name in ("a", "b"):
        save(tmp_path / name / "1.jpg", 5, size=(8, 16), exif=exif)
    assert load_folder(tmp_path).image_shape == (1, 8, 16)


def test_resize_to_a_side_or_to_height_and_width(folder):
    save(folder / "dogs" / "wide.png", 33, size=(20, 10))
    assert load_dataset(folder, resize=4).image_shape == (1, 4, 4)
    dataset = load_dataset(folder, resize=(3, 6))
    assert dataset.image_shape == (1, 3, 6)
    assert dataset.x_train[-1].unique().tolist() == [33]


def test_hidden_things_are_ignored_and_other_files_are_mentioned(folder, caplog):
    save(folder / ".thumbnails" / "1.png", 1)
    save(folder / "__MACOSX" / "1.png", 1)
    (folder / "cats" / ".DS_Store").write_bytes(b"?")
    (folder / "cats" / "notes.txt").write_text("meow")
    (folder / "readme.txt").write_text("hello")
    with caplog.at_level(logging.WARNING):
        assert load_folder(folder).class_names == ("cats", "dogs")
    assert "1 files that are no images" in caplog.text and ".DS_Store" not in caplog.text


# ---------------------------------------------------------------------------------------------------------- bad folders


def corrupt(path):
    content = np.random.default_rng(0).integers(256, size=(5, 7), dtype=np.uint8)
    Image.fromarray(content).save(path)
    path.write_bytes(path.read_bytes()[:60])


@pytest.mark.parametrize(
    ("damage", "message"),
    [
        (corrupt, r"cannot read the image .*bad\.png: .*Remove the file"),
        (lambda path: path.write_bytes(b""), r"bad\.png: no image format"),
        (lambda path: path.write_bytes(b"GIF89a, not really"), r"bad\.png: no image format"),
        (lambda path: save(path, 1, size=(7, 6)), r"2 different sizes, height×width: 5×7 .*; 6×7 .*bad\.png.*resize="),
    ],
)
def test_a_bad_image_is_named(folder, damage, message):
    damage(folder / "cats" / "bad.png")
    with pytest.raises(DataError, match=message):
        load_folder(folder)


def test_floating_point_images_are_refused(folder):
    save(folder / "cats" / "bad.tif", 0.5, mode="F")
    with pytest.raises(DataError, match=r"bad\.tif: it has floating-point pixels"):
        load_folder(folder)


def test_an_empty_folder(tmp_path):
    with pytest.raises(DataError, match="has no sub-folder; expected one sub-folder per class"):
        load_folder(tmp_path)


def test_one_class(tmp_path):
    save(tmp_path / "cats" / "1.png", 3)
    with pytest.raises(DataError, match="has only cats/; expected one sub-folder per class, at least two"):
        load_folder(tmp_path)


def test_images_without_class_folders(tmp_path):
    save(tmp_path / "1.png", 3)
    with pytest.raises(DataError, match="has no sub-folder"):
        load_folder(tmp_path)


def test_an_empty_class(folder):
    (folder / "emus").mkdir()
    with pytest.raises(DataError, match="emus holds no images"):
        load_folder(folder)


def test_a_class_only_in_test(folder):
    for name in ("train/a", "train/b", "test/a", "test/c"):
        save(folder / "set" / name / "1.png", 9)
    with pytest.raises(DataError, match=r"has the classes c, which .*train has not"):
        load_folder(folder / "set")


@pytest.mark.parametrize("place", ["cats/.ipynb_checkpoints/0-checkpoint.png", "cats/__MACOSX/0.png", "cats/._0.png"])
def test_what_tools_leave_behind_is_not_learned_from(folder, place):
    save(folder / place, 99)
    assert load_dataset(folder).num_train == 6


def test_images_beside_the_class_folders_are_mentioned(folder, caplog):
    save(folder / "loose.png", 99)
    with caplog.at_level(logging.WARNING):
        assert load_dataset(folder).num_train == 6
    assert "1 images beside the class folders are left out" in caplog.text


def test_every_orientation_of_a_camera(tmp_path):
    upright = np.arange(35, dtype=np.uint8).reshape(5, 7) * 7
    ways = {1: upright, 2: upright[:, ::-1], 3: upright[::-1, ::-1], 4: upright[::-1]}
    ways |= {5: upright.T, 6: np.rot90(upright), 7: np.rot90(upright, 2).T, 8: np.rot90(upright, -1)}
    for value, stored in ways.items():
        exif = Image.Exif()
        exif[0x0112] = value
        path = tmp_path / str(value % 2) / f"{value}.png"
        path.parent.mkdir(exist_ok=True)
        Image.fromarray(np.ascontiguousarray(stored)).save(path, exif=exif)
    dataset = load_dataset(tmp_path)
    for image in dataset.x_train[:, 0]:
        assert torch.equal(image, torch.from_numpy(upright))


def test_odd_exif_is_no_obstacle(folder):
    exif = Image.Exif()
    exif[0x0112] = 77
    save(folder / "cats" / "odd.png", 50, exif=exif)
    assert load_dataset(folder).num_train == 7


def test_a_suffix_is_only_a_claim(folder):
    Image.new("RGB", (7, 5)).save(folder / "cats" / "a.eps", "EPS")
    (folder / "cats" / "a.eps").rename(folder / "cats" / "a.png")
    with pytest.raises(DataError, match=r"cannot read the image .*a.png: no image format"):
        load_dataset(folder)


def test_sixteen_bits_of_which_only_twelve_are_used_are_mentioned(tmp_path, caplog):
    for name, level in (("cats", 4000), ("dogs", 100)):
        (tmp_path / name).mkdir()
        Image.fromarray(np.full((5, 7), level, np.uint16)).save(tmp_path / name / "a.png")
    with caplog.at_level(logging.WARNING):
        load_dataset(tmp_path)
    assert "reach a level of 4000 out of 65535" in caplog.text


# --- images that nobody has sorted


def test_the_names_of_images_are_in_the_order_of_the_images(folder):
    for split, level in (("train", 1), ("test", 3)):
        save(folder / "set" / split / "2" / "a.bmp", level)
        save(folder / "set" / split / "10" / "deeper" / "b.TIF", level + 1)
    assert image_names(folder / "set", "train") == ["train/2/a.bmp", "train/10/deeper/b.TIF"]
    assert image_names(folder / "set", "test") == ["test/2/a.bmp", "test/10/deeper/b.TIF"]
    assert image_names(folder, "train")[:2] == ["cats/0.png", "cats/1.png"]


def test_a_folder_is_unsorted_without_sub_folders(folder):
    assert is_unsorted(folder / "cats") and not is_unsorted(folder) and not is_unsorted(folder / "nowhere")
    (folder / "empty").mkdir()
    assert not is_unsorted(folder / "empty")


def test_unsorted_images_and_single_files_are_loaded_with_their_names(folder):
    images, names = load_images(folder / "cats", channels=1)
    assert names == ["0.png", "1.png", "2.png"] and images.shape == (3, 1, 5, 7)
    torch.testing.assert_close(images[:][:, 0, 0, 0] * 255, torch.tensor([10.0, 11.0, 12.0]))
    images, names = load_images(folder / "cats" / "1.png", channels=3, resize=(4, 6))
    assert names == ["1.png"] and images[:].shape == (1, 3, 4, 6)


def test_colour_is_not_thrown_away(folder):
    save(folder / "cats" / "red.png", (200, 0, 0), mode="RGB")
    assert load_images(folder / "cats", channels=3)[0].shape == (4, 3, 5, 7)
    with pytest.raises(DataError, match="coloured images; expected grey"):
        load_images(folder / "cats", channels=1)
