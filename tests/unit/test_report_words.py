"""What the report says about ranges."""

import math

import pytest

from orbitune.orbits import AffineOrbit
from orbitune.report.words import describe_range, join_words, reading, verdict, verdict_sentences

NEAR_ZERO = {name: (-0.02, 0.02) for name in AffineOrbit.names}
NBSP = "\N{NO-BREAK SPACE}"


@pytest.mark.parametrize(
    ("name", "parameter", "shown"),
    [
        ("rotation", math.pi / 2, "+90°"),
        ("rotation", -math.pi, "−180°"),
        ("rotation", 0.0, "0°"),
        ("log_scale_x", math.log(1.5), f"150{NBSP}%"),
        ("log_scale_y", math.log(0.5), f"50{NBSP}%"),
        ("shear_x", 1.0, "+45°"),
        ("translate_x", 0.5, f"+8.0{NBSP}px"),  # a quarter of 32 pixels
        ("translate_y", -1.0, f"−10.0{NBSP}px"),  # half of 20 pixels
        ("phase_shift", 0.25, "+0.25"),
    ],
)
def test_parameters_are_shown_in_degrees_percent_and_pixels(name, parameter, shown):
    assert reading(name, height=20, width=32).value(parameter) == shown


def test_every_parameter_of_the_affine_orbit_has_words_of_its_own():
    titles = {reading(name).title for name in AffineOrbit.names}
    assert len(titles) == len(AffineOrbit.names) and not any("_" in title for title in titles)


def test_a_range_is_symmetric_in_words_if_it_nearly_is():
    rotation = reading("rotation")
    assert rotation.span(-3.10, 3.05) == "±178°"
    assert rotation.span(-0.2, 1.5) == "−11° to +86°"
    assert reading("log_scale_x").span(-0.1, 0.1) == f"90{NBSP}% to 111{NBSP}%"


def test_the_verdict_names_what_is_harmless_and_what_may_not_be():
    first, *rest = verdict_sentences({**NEAR_ZERO, "rotation": (-3.10, 3.05)})
    assert first == "Rotations up to ±178° do not change the label."
    assert rest == ["Slants, shifts and changes of size may: their ranges stayed near zero."]


def test_small_amounts_do_not_crowd_the_headline():
    sentences = verdict_sentences({**NEAR_ZERO, "rotation": (-2.0, 2.0), "shear_x": (-0.15, 0.15)})
    assert sentences[0] == "Rotations up to ±115° do not change the label."
    assert sentences[1] == "Nor, in small amounts, do sideways slants up to ±9°."
    assert sentences[2].startswith("Shifts, changes of size and vertical slants may")


def test_small_amounts_are_the_headline_if_there_is_nothing_else():
    assert verdict({"shear_x": (-0.15, 0.15)}) == "Sideways slants up to ±9° do not change the label."


def test_ranges_that_were_not_learned_are_not_called_learned():
    assert verdict(NEAR_ZERO).startswith("Nothing to be invariant to was found")
    assert verdict({}) == "Nothing was asked about transformations: this model has no orbit."
    given = verdict({"rotation": (-1.0, 1.0), "shear_x": (0.0, 0.0)}, learned=())
    assert given == "Given, not learned: rotations up to ±57°. Not examined: slants."
    held = verdict({"rotation": (-1.0, 1.0), "translate_x": (0.0, 0.0), "translate_y": (0.0, 0.0)})
    assert held == "Rotations up to ±57° do not change the label. Not examined: shifts."


def test_ranges_on_the_command_line_read_as_sentences():
    assert describe_range("rotation", -0.5, 0.5) == "turned by −29° to +29°"
    assert describe_range("shear_y", 0.0, 1.0) == "slanted up or down by 0° to +45°"
    assert describe_range("translate_x", -0.5, 0.5).endswith(f"+25{NBSP}% of the image width")


def test_words_are_joined_as_in_a_sentence():
    assert [join_words(list(words)) for words in ("", "a", "ab", "abc")] == ["", "a", "a and b", "a, b and c"]
