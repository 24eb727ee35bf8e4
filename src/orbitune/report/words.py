"""Ranges in words and units a newcomer understands."""

import math
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from enum import StrEnum

# A range narrower than this, in both directions, is as good as none.
NEGLIGIBLE = {
    "rotation": 0.15,
    "log_scale_x": 0.1,
    "log_scale_y": 0.1,
    "shear_x": 0.1,
    "shear_y": 0.1,
    "translate_x": 0.1,
    "translate_y": 0.1,
}

# Beyond so many times that, it is what there is to say about the data; up to there, it is a small amount.
SUBSTANTIAL = 2.5

_PERCENT, _PIXELS = "\N{NO-BREAK SPACE}%", "\N{NO-BREAK SPACE}px"


@dataclass(frozen=True)
class Reading:
    """How a transform parameter is shown to people.

    Attributes:
        title: what it is called.
        plural: what changes of this kind are called.
        family: what it is called together with its sisters.
        unit: of the shown values, with the space before it, if any.
        convert: from the parameter to the shown value; monotone.
        signed: whether zero is the identity, so that a sign is worth showing.
        digits: decimals shown.
    """

    title: str
    plural: str
    family: str
    unit: str = ""
    convert: Callable[[float], float] = float
    signed: bool = True
    digits: int = 0

    def value(self, parameter: float) -> str:
        """One value with its unit: +12°, 94 %, −3.5 px."""
        return self.number(self.convert(parameter)) + self.unit

    def number(self, shown: float) -> str:
        """A converted value, without its unit."""
        text = f"{abs(shown):.{self.digits}f}"
        if float(text) == 0 or not self.signed:
            return text
        return ("−" if shown < 0 else "+") + text

    def span(self, low: float, high: float) -> str:
        """A range: ±178°, or −20° to +170°, or 94 % to 111 %."""
        small, large = self.convert(low), self.convert(high)
        if self.signed and small < 0 < large and abs(small + large) <= 0.1 * (large - small):
            return f"±{max(-small, large):.{self.digits}f}{self.unit}"
        return f"{self.value(low)} to {self.value(high)}"


def _slant(shear: float) -> float:
    return math.degrees(math.atan(shear))


def _scale(log_scale: float) -> float:
    return 100 * math.exp(log_scale)


def reading(name: str, height: int | None = None, width: int | None = None) -> Reading:
    """How to show a parameter: degrees, percent, and pixels where the size of the images is known."""
    match name:
        case "rotation":
            return Reading("rotation", "rotations", "rotations", "°", math.degrees)
        case "log_scale_x":
            return Reading("width", "changes of width", "changes of size", _PERCENT, _scale, signed=False)
        case "log_scale_y":
            return Reading("height", "changes of height", "changes of size", _PERCENT, _scale, signed=False)
        case "shear_x":
            return Reading("sideways slant", "sideways slants", "slants", "°", _slant)
        case "shear_y":
            return Reading("vertical slant", "vertical slants", "slants", "°", _slant)
        case "translate_x":
            return _shift("sideways", "width", width)
        case "translate_y":
            return _shift("vertical", "height", height)
        case _:
            title = name.replace("_", " ")
            return Reading(title, f"changes of {title}", f"changes of {title}", digits=2)


def _shift(direction: str, side: str, pixels: int | None) -> Reading:
    # A translation of 1 is half the side.
    unit, factor, digits = (_PIXELS, pixels / 2, 1) if pixels else (f"{_PERCENT} of the image {side}", 50.0, 0)
    return Reading(
        f"{direction} shift", f"{direction} shifts", "shifts", unit, lambda shift: factor * shift, digits=digits
    )


def describe_range(name: str, low: float, high: float) -> str:
    """One range, in degrees, percent and fractions of the image."""
    shown = reading(name)
    span = f"{shown.value(low)} to {shown.value(high)}"
    match name:
        case "rotation":
            return f"turned by {span}"
        case "log_scale_x" | "log_scale_y":
            return f"{shown.title} scaled to {span}"
        case "shear_x" | "shear_y":
            return f"slanted {'sideways' if name.endswith('x') else 'up or down'} by {span}"
        case "translate_x" | "translate_y":
            return f"shifted {'sideways' if name.endswith('x') else 'up or down'} by {span}"
        case _:
            return f"{shown.title} from {span}"


class Extent(StrEnum):
    """How much of a transformation is harmless."""

    wide = "harmless"
    slight = "small amounts"
    none = "near zero"


def extent(name: str, low: float, high: float) -> Extent:
    """How far a learned range goes, compared with what is as good as none."""
    width = max(-low, high) / NEGLIGIBLE.get(name, 0.1)
    if width <= 1:
        return Extent.none
    return Extent.wide if width > SUBSTANTIAL else Extent.slight


def verdict(ranges: Mapping[str, tuple[float, float]], learned: Collection[str] | None = None) -> str:
    """What may and what may not happen to an image without changing its label.

    Args:
        ranges: (low, high) by name.
        learned: names whose range was learned; by default all but those that are exactly zero.
    """
    return " ".join(verdict_sentences(ranges, learned))


def verdict_sentences(
    ranges: Mapping[str, tuple[float, float]], learned: Collection[str] | None = None
) -> tuple[str, ...]:
    """The verdict sentence by sentence: the first is the answer, the others what to know about it."""
    learned = [name for name, bounds in ranges.items() if any(bounds)] if learned is None else learned
    found = [name for name in ranges if name in learned]
    wide, slight, tight = ([name for name in found if extent(name, *ranges[name]) == e] for e in Extent)
    held = [name for name in ranges if name not in learned]
    given = [name for name in held if any(ranges[name])]
    sentences = []
    if wide or slight:
        first = _allowed(wide or slight, ranges)
        sentences.append(f"{_capital(first)} do not change the label.")
        if wide and slight:
            sentences.append(f"Nor, in small amounts, do {_allowed(slight, ranges)}.")
        if tight:
            sentences.append(f"{_capital(_families(tight, ranges))} may: their ranges stayed near zero.")
    elif found:
        sentences.append("Nothing to be invariant to was found in these data: every range stayed near zero.")
    elif not given:
        sentences.append("Nothing was asked about transformations: this model has no orbit.")
    if given:
        sentences.append(f"Given, not learned: {_allowed(given, ranges)}.")
    if held and (found or given) and len(given) < len(held):
        sentences.append(f"Not examined: {_families([name for name in held if name not in given], ranges)}.")
    return tuple(sentences)


def _allowed(names: list[str], ranges: Mapping[str, tuple[float, float]]) -> str:
    return join_words([f"{reading(name).plural} {_from_to(name, *ranges[name])}" for name in names])


def _from_to(name: str, low: float, high: float) -> str:
    span = reading(name).span(low, high)
    return f"up to {span}" if span.startswith("±") else f"from {span}"


def _families(names: list[str], ranges: Mapping[str, tuple[float, float]]) -> str:
    """Families of transformations that are complete in ``names``, and single members of the others."""
    words = []
    for name in names:
        family = reading(name).family
        sisters = [other for other in ranges if reading(other).family == family]
        word = family if all(sister in names for sister in sisters) else reading(name).plural
        if word not in words:
            words.append(word)
    return join_words(sorted(words, key=len))  # "shifts and changes of width", not "changes of width and shifts"


def join_words(words: list[str]) -> str:
    """a; a and b; a, b and c."""
    return " and ".join([", ".join(words[:-1]), words[-1]]) if len(words) > 1 else "".join(words)


def _capital(text: str) -> str:
    return text[:1].upper() + text[1:]
