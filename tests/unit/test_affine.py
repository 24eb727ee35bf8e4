"""Geometry of AffineOrbit: what its Convention block says, against numpy; its ranges and how they are sampled."""

import itertools
import math

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from orbitune.orbits import AffineOrbit
from orbitune.orbits.affine import pull_back
from orbitune.orbits.uniform import stratified_uniform
from orbitune.orbits.warp import warp

PADDINGS = ["zeros", "border", "reflection"]
NAMES = AffineOrbit.names


def seeded(seed):
    return torch.Generator().manual_seed(seed)


def random_images(*shape, seed=0, dtype=torch.float64):
    return torch.rand(*shape, generator=seeded(seed), dtype=dtype)  # (B, Ch, H, W)


def params_of(dtype=torch.float64, **values):
    """(1, 1, 7), zero except for what is named."""
    return torch.tensor([[[values.get(name, 0.0) for name in NAMES]]], dtype=dtype)


def transform_one(image, padding="zeros", **values):
    """One image (H, W) under one map."""
    return AffineOrbit(padding=padding).transform(image[None, None], params_of(image.dtype, **values))[0, 0, 0]


def forward_matrix(params, height, width):
    """T = Translate · Rotate · ShearX · ShearY · Scale (3, 3) as the Convention says: pixels, y down."""
    rotation, log_scale_x, log_scale_y, shear_x, shear_y, translate_x, translate_y = params
    cos, sin = np.cos(rotation), np.sin(rotation)
    translate = np.array([[1, 0, translate_x * width / 2], [0, 1, translate_y * height / 2], [0, 0, 1]])
    # Counter-clockwise as displayed: what points right (1, 0) then points up, (0, −1).
    rotate = np.array([[cos, sin, 0], [-sin, cos, 0], [0, 0, 1]])
    shear_in_x = np.array([[1, shear_x, 0], [0, 1, 0], [0, 0, 1]])
    shear_in_y = np.array([[1, 0, 0], [shear_y, 1, 0], [0, 0, 1]])
    scale = np.diag([np.exp(log_scale_x), np.exp(log_scale_y), 1])
    return translate @ rotate @ shear_in_x @ shear_in_y @ scale


def centred_grid(height, width):
    """x, y (H, W) in pixels from the image centre, y down."""
    y, x = np.mgrid[:height, :width]
    return x - (width - 1) / 2, y - (height - 1) / 2


# --------------------------------------------------------------------------------------------------------- identity


@pytest.mark.parametrize("padding", PADDINGS)
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("shape", [(1, 1, 1), (1, 28, 28), (3, 32, 32), (3, 5, 8), (2, 7, 4), (1, 33, 17), (1, 1, 6)])
def test_zeros_are_the_identity_bit_for_bit(shape, dtype, padding):
    images = random_images(2, *shape, dtype=dtype)
    warped = AffineOrbit(padding=padding).transform(images, torch.zeros(2, 3, 7, dtype=dtype))
    assert torch.equal(warped, images.unsqueeze(1).expand(2, 3, *shape))


def test_zeros_are_the_identity_bit_for_bit_on_images_of_any_scale():
    images = torch.randn(1, 1, 6, 7, generator=seeded(0)) * 10.0 ** torch.arange(-20, 22).reshape(6, 7)
    assert torch.equal(AffineOrbit().transform(images, torch.zeros(1, 1, 7))[:, 0], images)


# --------------------------------------------------------------------------------------------------------- rotations

# Positions of up to 10 pixels from the centre are off by 10 · 2⁻²³ ≈ 1e-6 in float32, times slopes of at most 1.
QUARTER_TURN_ERROR = 1e-5


@pytest.mark.parametrize("side", [8, 9, 13])
@pytest.mark.parametrize("quarter_turns", [1, -1, 2, -2, 3])
def test_quarter_turns_are_those_of_numpy_rot90(quarter_turns, side):
    image = random_images(side, side, dtype=torch.float32)
    warped = transform_one(image, rotation=quarter_turns * math.pi / 2)
    np.testing.assert_allclose(warped, np.rot90(image, quarter_turns), rtol=0, atol=QUARTER_TURN_ERROR)


@pytest.mark.parametrize("shape", [(6, 6), (5, 8), (7, 3)])
def test_half_a_turn_flips_both_axes_of_an_image_of_any_shape(shape):
    image = random_images(*shape, dtype=torch.float32)
    warped = transform_one(image, rotation=math.pi)
    np.testing.assert_allclose(warped, image.flip(0, 1), rtol=0, atol=QUARTER_TURN_ERROR)


def test_angles_are_angles_in_pixels_on_images_that_are_not_square():
    image = torch.zeros(6, 10)
    image[1:5, 3:7] = random_images(4, 4, dtype=torch.float32)  # a square in the middle
    expected = torch.zeros(6, 10)
    expected[1:5, 3:7] = image[1:5, 3:7].rot90(1)
    warped = transform_one(image, rotation=math.pi / 2)
    torch.testing.assert_close(warped, expected, rtol=0, atol=QUARTER_TURN_ERROR)


# ------------------------------------------------------------------------------------------- signs, shifts and scales


@pytest.mark.parametrize(
    ("name", "value", "where"),
    [
        ("rotation", math.pi / 2, (-1, -2)),
        ("rotation", -math.pi / 2, (1, 2)),
        ("log_scale_x", math.log(2), (4, -1)),
        ("log_scale_x", -math.log(2), (1, -1)),
        ("log_scale_y", math.log(2), (2, -2)),
        ("log_scale_y", math.log(3), (2, -3)),
        ("shear_x", 1.0, (1, -1)),
        ("shear_x", -1.0, (3, -1)),
        ("shear_y", 1.0, (2, 1)),
        ("shear_y", -1.0, (2, -3)),
        ("translate_x", 2 / 9, (3, -1)),
        ("translate_x", -2 / 9, (1, -1)),
        ("translate_y", 2 / 9, (2, 0)),
        ("translate_y", -2 / 9, (2, -2)),
    ],
)
def test_each_parameter_moves_a_bright_pixel_at_x_2_y_minus_1_where_its_sign_says(name, value, where):
    image = torch.zeros(9, 9, dtype=torch.float64)
    image[4 - 1, 4 + 2] = 1.0  # two to the right of the centre and one up
    row, column = divmod(int(transform_one(image, **{name: value}).argmax()), 9)
    assert (column - 4, row - 4) == where


@pytest.mark.parametrize(("right", "down"), [(1, 0), (-3, 0), (0, 2), (0, -5), (2, -1), (-7, 15), (8, 0)])
def test_translation_by_whole_pixels_is_an_exact_shift_with_zeros_entering(right, down):
    height, width = 16, 8  # powers of two: fractions of them are exact in floating point
    image = random_images(height, width, dtype=torch.float32)
    padded = np.pad(image, ((height, height), (width, width)))
    expected = padded[height - down : 2 * height - down, width - right : 2 * width - right]
    warped = transform_one(image, translate_x=2 * right / width, translate_y=2 * down / height)
    assert torch.equal(warped, torch.from_numpy(expected))


def test_translation_by_one_moves_by_half_the_image():
    image = random_images(6, 10)
    warped = transform_one(image, translate_x=1.0, translate_y=-1.0)
    expected = torch.zeros(6, 10, dtype=torch.float64)
    expected[:3, 5:] = image[3:, :5]
    assert torch.equal(warped, expected)


def test_translation_is_not_turned_or_scaled_by_the_other_parameters():
    """Translate is the last of the five maps: it moves the finished picture."""
    image, others = random_images(8, 8), {"rotation": 0.3, "log_scale_x": 0.2, "shear_y": 0.4}
    still, moved = transform_one(image, **others), transform_one(image, translate_x=2 / 8, **others)
    # The same positions, in float64, up to rounding.
    torch.testing.assert_close(moved[:, 1:], still[:, :-1], rtol=0, atol=1e-12)


@pytest.mark.parametrize(("name", "axis"), [("log_scale_x", 1), ("log_scale_y", 0)])
def test_scaling_by_log_2_doubles_every_distance_from_the_centre(name, axis):
    """A ramp becomes half as steep; linear interpolation reproduces it."""
    ramp = torch.from_numpy(centred_grid(7, 9)[1 - axis])
    # Nothing but rounding of float64 on numbers below 10.
    torch.testing.assert_close(transform_one(ramp, **{name: math.log(2)}), ramp / 2, rtol=0, atol=1e-13)


def test_scaling_by_minus_log_2_shrinks_the_content_to_the_middle_half():
    image = torch.ones(8, 8, dtype=torch.float64)
    warped = transform_one(image, log_scale_x=-math.log(2), log_scale_y=-math.log(2))
    expected = torch.zeros(8, 8, dtype=torch.float64)
    expected[2:6, 2:6] = 1.0
    # Rounding only: no output pixel is read from within half a pixel of the border.
    torch.testing.assert_close(warped, expected, rtol=0, atol=1e-13)


# ----------------------------------------------------------------------------------- the whole map, against matrices


def test_pull_back_is_the_inverse_of_the_product_of_the_five_matrices():
    params = torch.randn(4, 5, 7, generator=seeded(0), dtype=torch.float64)
    A = pull_back(params, height=11, width=6)  # (4, 5, 2, 3)
    for b, s in itertools.product(range(4), range(5)):
        expected = np.linalg.inv(forward_matrix(params[b, s].numpy(), 11, 6))[:2]
        # numpy's inverse loses a factor of the condition number, which is below 1e4 here.
        np.testing.assert_allclose(A[b, s], expected, rtol=1e-11, atol=1e-11)


moderate = st.floats(-0.6, 0.6)


@settings(deadline=None, derandomize=True, max_examples=25)
@given(
    params=st.tuples(st.floats(-math.pi, math.pi), *[moderate] * 6),
    height=st.integers(2, 9),
    width=st.integers(2, 9),
    padding=st.sampled_from(PADDINGS),
)
def test_an_image_is_read_from_where_the_matrices_say(params, height, width, padding):
    """On a + bx + cy + dxy bilinear interpolation is exact, so x_a(p) = x(T⁻¹p) wherever T⁻¹p lies in the image."""

    def picture(x, y):
        return 1 + 2 * x - 3 * y + 0.5 * x * y

    x, y = centred_grid(height, width)
    T_inverse = np.linalg.inv(forward_matrix(np.array(params), height, width))
    read_x, read_y = np.tensordot(T_inverse[:2], np.stack((x, y, np.ones_like(x))), axes=1)
    inside = (np.abs(read_x) <= (width - 1) / 2) & (np.abs(read_y) <= (height - 1) / 2)
    warped = transform_one(torch.from_numpy(picture(x, y)), padding, **dict(zip(NAMES, params, strict=True)))
    # Rounding of float64 on numbers below 100.
    np.testing.assert_allclose(warped.numpy()[inside], picture(read_x, read_y)[inside], rtol=0, atol=1e-11)


def test_rotations_add_up_as_maps():
    first, second = 0.4, 0.9
    A = [pull_back(params_of(rotation=angle), 7, 9)[0, 0, :, :2] for angle in (first, second, first + second)]
    # Rounding of float64 on numbers below 1.
    torch.testing.assert_close(A[0] @ A[1], A[2], rtol=0, atol=1e-14)


def test_rotations_add_up_on_a_smooth_image():
    x, y = centred_grid(49, 49)
    std = 4.0
    blob = torch.from_numpy(np.exp(-((x - 7) ** 2 + (y - 3) ** 2) / (2 * std**2)))
    twice = transform_one(transform_one(blob, rotation=0.4), rotation=0.9)
    once = transform_one(blob, rotation=1.3)
    # Linear interpolation is off by at most max|∂²|/8 per axis, and |∂²| ≤ 1/std² for the blob and for its
    # interpolants: 2/(8 · 16) per warp, of which there are three.
    torch.testing.assert_close(twice, once, rtol=0, atol=3 * 2 / (8 * std**2))
    assert (transform_one(blob, rotation=-1.3) - once).abs().max() > 0.5  # the tolerance tells angles apart


# ----------------------------------------------------------------------------------------------------------- padding

NUMPY_PADDING = {"zeros": "constant", "border": "edge", "reflection": "symmetric"}


def shifted_with_numpy(image, right, down, padding):
    height, width = image.shape
    by = 3 * max(height, width)
    padded = np.pad(image, by, mode=NUMPY_PADDING[padding])
    return padded[by - down : by - down + height, by - right : by - right + width]


@pytest.mark.parametrize("padding", PADDINGS)
@pytest.mark.parametrize(("right", "down"), [(1, 0), (-2, 1), (4, -4), (7, 3), (-11, -9)])
def test_what_enters_from_outside_is_what_numpy_pads(right, down, padding):
    height, width = 4, 8
    image = random_images(height, width)
    warped = transform_one(image, padding, translate_x=2 * right / width, translate_y=2 * down / height)
    # Whole pixels of a power of two: positions are exact.
    np.testing.assert_array_equal(warped, shifted_with_numpy(image.numpy(), right, down, padding))


@pytest.mark.parametrize("padding", PADDINGS)
@pytest.mark.parametrize("right", [0, -3, 6])
def test_between_pixels_the_padded_image_is_interpolated(right, padding):
    image = random_images(4, 8)
    warped = transform_one(image, padding, translate_x=2 * (right + 0.5) / 8)
    neighbours = [shifted_with_numpy(image.numpy(), right + step, 0, padding) for step in (0, 1)]
    # Half-way between whole pixels of a power of two: one rounding of float64.
    np.testing.assert_allclose(warped, (neighbours[0] + neighbours[1]) / 2, rtol=0, atol=1e-15)


@pytest.mark.parametrize("padding", ["border", "reflection"])
def test_a_constant_image_stays_constant_if_it_goes_on_outside(padding):
    images = torch.full((1, 1, 5, 7), 0.75, dtype=torch.float64)
    params = torch.randn(1, 20, 7, generator=seeded(1), dtype=torch.float64)
    # The four weights of an interpolation sum to one up to rounding.
    torch.testing.assert_close(
        AffineOrbit(padding=padding).transform(images, params), images.expand(1, 20, 1, 5, 7), rtol=0, atol=1e-14
    )


# --------------------------------------------------------------------------------------------------------- structure


def test_all_warps_of_a_batch_are_one_call_of_grid_sample(monkeypatch):
    calls = []
    original = torch.nn.functional.grid_sample

    def counted(*args, **kwargs):
        calls.append(args[0].shape)
        return original(*args, **kwargs)

    monkeypatch.setattr(torch.nn.functional, "grid_sample", counted)
    AffineOrbit()(random_images(3, 2, 4, 5, dtype=torch.float32), 11, seeded(0))
    assert len(calls) == 1
    assert calls[0][0] == 3  # B images, not B·S copies of them


def test_every_channel_is_warped_alike():
    images = random_images(2, 3, 5, 6)
    params = AffineOrbit(start=0.5).double().sample_params(2, 4, seeded(0))
    together = AffineOrbit().transform(images, params)
    apart = [AffineOrbit().transform(images[:, c : c + 1], params) for c in range(3)]
    # The same operations in other vector lanes: rounding of float64 on numbers of size 1.
    torch.testing.assert_close(together, torch.cat(apart, dim=2), rtol=0, atol=1e-14)


def test_warp_reads_each_image_along_its_own_maps():
    images = random_images(2, 1, 4, 4)
    identity = torch.tensor([[1.0, 0, 0], [0, 1, 0]], dtype=torch.float64)
    right, left = identity.clone(), identity.clone()
    right[0, 2], left[0, 2] = 1, -1
    maps = torch.stack((torch.stack((identity, right)), torch.stack((left, identity))))  # (2, 2, 2, 3)
    warped = warp(images, maps, "border")  # (2, 2, 1, 4, 4)
    assert torch.equal(warped[0, 0], images[0])
    assert torch.equal(warped[0, 1, :, :, :-1], images[0, :, :, 1:])
    assert torch.equal(warped[1, 0, :, :, 1:], images[1, :, :, :-1])
    assert torch.equal(warped[1, 1], images[1])


# --------------------------------------------------------------------------------------------------------- gradients


@pytest.mark.parametrize("padding", PADDINGS)
def test_gradients_in_the_parameters_are_finite_differences(padding):
    """At generic parameters: bilinear interpolation has kinks at pixel centres, which these positions avoid."""
    images = random_images(2, 2, 4, 5)
    params = (0.3 * torch.randn(2, 2, 7, generator=seeded(1), dtype=torch.float64)).requires_grad_()
    orbit = AffineOrbit(padding=padding)
    assert torch.autograd.gradcheck(lambda params: orbit.transform(images, params), params)


def test_gradients_in_the_images_are_finite_differences():
    images = random_images(1, 2, 3, 4).requires_grad_()
    params = 0.3 * torch.randn(1, 2, 7, generator=seeded(1), dtype=torch.float64)
    assert torch.autograd.gradcheck(lambda images: AffineOrbit().transform(images, params), images)


@pytest.mark.parametrize("shift", [0.0, 0.01])
@pytest.mark.parametrize("padding", ["border", "reflection"])
def test_a_constant_image_that_goes_on_outside_gives_no_gradient(padding, shift):
    """Also where the outermost pixels are read exactly at their centres, as at the identity."""
    images = torch.ones(1, 1, 4, 4, dtype=torch.float64)
    params = params_of(translate_x=shift).requires_grad_()
    warped = AffineOrbit(padding=padding).transform(images, params)
    (gradient,) = torch.autograd.grad((warped * random_images(4, 4)).sum(), params)
    # Differences of equal pixels, rounded once, times a few pixels.
    torch.testing.assert_close(gradient, torch.zeros_like(gradient), rtol=0, atol=1e-12)


def test_gradients_reach_both_ends_of_all_seven_ranges():
    orbit = AffineOrbit(start=0.2)
    orbit(random_images(2, 1, 6, 7, dtype=torch.float32), 3, seeded(0)).square().sum().backward()
    for end in (orbit.learned.raw_low, orbit.learned.raw_high):
        assert end.grad.isfinite().all()
        assert (end.grad != 0).all()


def test_gradients_in_the_ranges_are_finite_differences():
    images, orbit = random_images(1, 1, 4, 5), AffineOrbit(start=0.2).double()
    names = ("learned.raw_low", "learned.raw_high")

    def points(*ends):
        return torch.func.functional_call(orbit, dict(zip(names, ends, strict=True)), (images, 2, seeded(3)))

    assert torch.autograd.gradcheck(points, [orbit.get_parameter(name) for name in names])


# ------------------------------------------------------------------------------------------------------------ ranges

RANGES = {"rotation": (-0.5, 1.5), "log_scale_y": (0.1, 0.3), "translate_x": (-0.4, -0.2)}


def test_ranges_are_those_given_and_small_for_the_rest():
    ranges = AffineOrbit(RANGES, start=0.125).double().ranges()
    for name in NAMES:
        # The bounds are kept in float32.
        assert ranges[name] == pytest.approx(RANGES.get(name, (-0.125, 0.125)), rel=1e-6)


def test_ranges_list_the_smaller_bound_first_even_if_learning_has_crossed_them():
    orbit = AffineOrbit({"rotation": (-0.5, 0.25)})
    with torch.no_grad():
        orbit.learned.raw_low[0], orbit.learned.raw_high[0] = 1.0, -2.0
    assert orbit.ranges()["rotation"] == (-2.0, 1.0)


def test_direct_and_reciprocal_parameterisations_draw_the_same_orbit():
    direct, reciprocal = (AffineOrbit(RANGES, parameterisation=kind) for kind in ("direct", "reciprocal"))
    # 1/(1/x) is x up to two roundings of float32, on numbers below 2.
    torch.testing.assert_close(
        direct.sample_params(3, 4, seeded(0)), reciprocal.sample_params(3, 4, seeded(0)), rtol=0, atol=1e-6
    )


def test_reciprocal_parameters_are_one_over_the_bounds():
    orbit = AffineOrbit({"rotation": (-0.5, 2.0)}, learn=["rotation"], parameterisation="reciprocal")
    assert (orbit.learned.raw_low.item(), orbit.learned.raw_high.item()) == (-2.0, 0.5)


@pytest.mark.parametrize("end", ["low", "high"])
def test_gradients_of_both_parameterisations_obey_the_chain_rule(end):
    gradients, images = {}, random_images(2, 1, 6, 7)
    for kind in ("direct", "reciprocal"):
        orbit = AffineOrbit(RANGES, parameterisation=kind).double()
        orbit(images, 3, seeded(0)).square().sum().backward()
        gradients[kind] = getattr(orbit.learned, f"raw_{end}").grad
    bound = getattr(AffineOrbit(RANGES).double(), end).detach()
    # ξ = 1/b, so ∂/∂ξ = −b² ∂/∂b. The bounds agree to float32 (1e-7), and with them the gradients.
    torch.testing.assert_close(gradients["reciprocal"], -bound.square() * gradients["direct"], rtol=1e-4, atol=1e-5)


def test_symmetric_ranges_are_one_number_per_parameter():
    orbit = AffineOrbit({"rotation": (-0.7, 0.7)}, symmetric=True)
    assert [name for name, _ in orbit.named_parameters()] == ["learned.raw_high"]
    assert torch.equal(orbit.low, -orbit.high)


def test_symmetric_ranges_stay_symmetric_when_they_move():
    orbit = AffineOrbit(symmetric=True)
    with torch.no_grad():
        orbit.learned.raw_high += torch.arange(7)
    assert all(low == -high for low, high in orbit.ranges().values())


@pytest.mark.parametrize("kind", ["direct", "reciprocal"])
def test_the_gradient_of_a_symmetric_range_collects_those_of_both_ends(kind):
    images = random_images(2, 1, 6, 7)
    tied = AffineOrbit(start=0.2, symmetric=True, parameterisation=kind).double()
    free = AffineOrbit(start=0.2, parameterisation=kind).double()
    for orbit in (tied, free):
        orbit(images, 3, seeded(0)).square().sum().backward()
    # low = −high, and 1/low = −1/high: the same sums, in another order.
    torch.testing.assert_close(
        tied.learned.raw_high.grad, free.learned.raw_high.grad - free.learned.raw_low.grad, rtol=1e-10, atol=1e-10
    )


def test_only_the_ranges_in_learn_have_parameters():
    orbit = AffineOrbit(RANGES, learn=["rotation", "shear_x"])
    assert orbit.learned.raw_low.shape == orbit.learned.raw_high.shape == (2,)


def test_the_ranges_outside_learn_stay_where_they_are():
    orbit = AffineOrbit(RANGES, learn=["rotation", "shear_x"])
    before = orbit.ranges()
    optimiser = torch.optim.Adam(orbit.parameters(), lr=0.1)
    orbit(random_images(2, 1, 6, 7, dtype=torch.float32), 3, seeded(0)).square().sum().backward()
    optimiser.step()
    after = orbit.ranges()
    assert {name for name in NAMES if after[name] != before[name]} == {"rotation", "shear_x"}


def test_names_neither_given_nor_learned_are_exactly_zero():
    orbit = AffineOrbit(learn=["rotation"])
    params = orbit.sample_params(3, 4, seeded(0))
    assert (params[..., 1:] == 0).all()


def test_an_orbit_with_nothing_to_learn_still_draws_from_its_ranges():
    params = AffineOrbit({"rotation": (-1.0, 1.0)}, learn=()).sample_params(3, 4, seeded(0))
    assert (params[..., 0] != 0).all()


# -------------------------------------------------------------------------------------------------------- stratified

DOUBLE = torch.zeros((), dtype=torch.float64)


@pytest.mark.parametrize("size", [1, 2, 5, 8])
def test_every_stratum_holds_exactly_one_point_per_image_and_dimension(size):
    eps = stratified_uniform(batch=6, size=size, dims=3, generator=seeded(0), like=DOUBLE)  # (B, S, P)
    strata = (eps * size).floor().sort(dim=1).values
    assert torch.equal(strata, torch.arange(size).double()[:, None].expand(6, size, 3))


def test_images_get_different_points():
    eps = stratified_uniform(batch=6, size=4, dims=2, generator=seeded(0), like=DOUBLE)
    assert len(eps.flatten(1).unique(dim=0)) == 6


def test_two_calls_give_different_points():
    generator = seeded(0)
    first, second = (stratified_uniform(4, 3, 2, generator, DOUBLE) for _ in range(2))
    assert not torch.isclose(first, second).any()


def test_each_point_by_itself_is_uniform():
    """The largest distance of the empirical from the uniform distribution function (Kolmogorov and Smirnov)."""
    num = 4000
    eps = stratified_uniform(batch=num, size=3, dims=2, generator=seeded(0), like=DOUBLE)  # (B, S, P)
    ranks = torch.arange(1, num + 1, dtype=torch.float64)[:, None, None] / num
    distance = (eps.sort(dim=0).values - ranks).abs().amax(0)  # (S, P)
    # √num · distance exceeds 2.25 with probability 2 exp(−2 · 2.25²) = 8e-5, that of four standard errors.
    assert (num**0.5 * distance < 2.25).all()


def test_the_dimensions_of_a_point_are_independent():
    num = 4000
    eps = stratified_uniform(batch=num, size=3, dims=3, generator=seeded(0), like=DOUBLE)
    centred = (eps - 0.5) * 12**0.5  # mean 0, variance 1
    correlation = torch.einsum("bsp,bsq->spq", centred, centred) / num  # (S, P, P)
    off_diagonal = correlation[:, ~torch.eye(3, dtype=torch.bool)]
    assert (off_diagonal.abs() < 4 / num**0.5).all()  # four standard errors


def test_stratification_lowers_the_variance_of_an_orbit_average():
    eps = stratified_uniform(batch=500, size=8, dims=1, generator=seeded(0), like=DOUBLE)
    # Independent points: 1/(12 · 8). One per stratum: 1/(12 · 8³), 64 times less; ask for a quarter of that gain.
    assert eps.mean(1).var() < 1 / (12 * 8) / 16


def test_sampled_parameters_fill_their_ranges():
    orbit = AffineOrbit({"rotation": (1.0, 3.0)}, learn=()).double()
    rotation = orbit.sample_params(2, 100, seeded(0))[..., 0]
    # One point in each of 100 strata of width 0.02.
    assert (rotation.amin(1) < 1.02).all()
    assert (rotation.amax(1) > 2.98).all()
    assert (rotation.amin(1) >= 1).all()
    assert (rotation.amax(1) <= 3).all()
