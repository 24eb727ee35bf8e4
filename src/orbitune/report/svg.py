"""Small SVG charts: elements that escape what they are given, and axes that map data to a drawing.

A drawing is 360 units wide and meant to be shown at about 360 pixels, on a phone as in a column of a desktop page:
its letters then have the same size everywhere. Colours are the style sheet's, so that charts follow light and dark.
"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

import numpy as np
from markupsafe import Markup, escape
from matplotlib.ticker import MaxNLocator

WIDTH = 360.0


def tag(name: str, *children: str | Markup, **attributes: object) -> Markup:
    """An element; text and attributes are escaped. ``class_`` and ``stroke_width`` become class and stroke-width."""
    pairs = [
        Markup(' {}="{}"').format(key.rstrip("_").replace("_", "-"), _text(value))
        for key, value in attributes.items()
        if value is not None
    ]
    inside = Markup("").join(escape(child) for child in children)
    return Markup("<{0}{1}>{2}</{0}>").format(name, Markup("").join(pairs), inside)


def drawing(title: str, description: str, height: float, *children: Markup) -> Markup:
    """A chart with a name and a description for those who cannot see it."""
    about = (tag("title", title), tag("desc", description))
    box = f"0 0 {_text(WIDTH)} {_text(height)}"
    return tag("svg", *about, *children, viewBox=box, role="img", aria_label=f"{title}. {description}")


def label(x: float, y: float, text: str, class_: str = "", anchor: str = "start", **attributes: object) -> Markup:
    """Text."""
    return tag("text", text, x=x, y=y, class_=class_ or None, text_anchor=anchor, **attributes)


def polyline(points: Iterable[tuple[float, float]], class_: str) -> Markup:
    """A line through points of the drawing."""
    return tag("polyline", points=" ".join(f"{_text(x)},{_text(y)}" for x, y in points), class_=class_)


def ticks(
    low: float, high: float, num: int, steps: Sequence[float] = (1.0, 2.0, 5.0, 10.0), *, whole: bool = False
) -> list[float]:
    """Round numbers within [low, high], or whole ones only."""
    slack = 1e-9 * (high - low)
    found = MaxNLocator(num, steps=list(steps), integer=whole).tick_values(low, high)
    return [0.0 if abs(tick) < slack else float(tick) for tick in found if low - slack <= tick <= high + slack]


@dataclass(frozen=True)
class Axes:
    """A rectangle of the drawing, (left, top) to (right, bottom), and the data it shows."""

    x_range: tuple[float, float]
    y_range: tuple[float, float]
    left: float = 44.0
    right: float = WIDTH - 10
    top: float = 12.0
    bottom: float = 150.0

    def x(self, value: float) -> float:
        """Where a value lies, left to right."""
        low, high = self.x_range
        return self.left + (self.right - self.left) * (value - low) / (high - low)

    def y(self, value: float) -> float:
        """Where a value lies, bottom to top."""
        low, high = self.y_range
        return self.bottom - (self.bottom - self.top) * (value - low) / (high - low)

    def line(self, xs: Sequence[float], ys: Sequence[float], class_: str) -> Markup:
        """A curve."""
        return polyline([(self.x(x), self.y(y)) for x, y in zip(xs, ys, strict=True)], f"line {class_}")

    def band(self, xs: Sequence[float], low: Sequence[float], high: Sequence[float], class_: str) -> Markup:
        """The area between two curves."""
        there = [(self.x(x), self.y(y)) for x, y in zip(xs, high, strict=True)]
        back = [(self.x(x), self.y(y)) for x, y in zip(xs, low, strict=True)][::-1]
        path = "M" + "L".join(f"{_text(x)},{_text(y)}" for x, y in there + back) + "Z"
        return tag("path", d=path, class_=f"band {class_}")

    def grid(
        self,
        x_ticks: Sequence[float],
        y_ticks: Sequence[float],
        x_text: Callable[[float], str],
        y_text: Callable[[float], str],
        x_title: str = "",
    ) -> Markup:
        """Horizontal grid lines with numbers, and numbers along the bottom."""
        parts = []
        for tick in y_ticks:
            y = self.y(tick)
            parts += [
                tag("line", x1=self.left, x2=self.right, y1=y, y2=y, class_="grid"),
                label(self.left - 6, y + 3.5, y_text(tick), "tick", "end"),
            ]
        for tick in x_ticks:
            parts.append(label(self.x(tick), self.bottom + 15, x_text(tick), "tick", "middle"))
        if x_title:
            parts.append(label((self.left + self.right) / 2, self.bottom + 31, x_title, "tick", "middle"))
        return Markup("").join(parts)


def padded(values: Sequence[float], share: float = 0.06) -> tuple[float, float]:
    """The range of some values with a margin, never empty."""
    low, high = float(np.min(values)), float(np.max(values))
    margin = share * (high - low) or 0.5 * (abs(high) or 1.0)
    return low - margin, high + margin


def _text(value: object) -> str:
    """Numbers with two decimals at most, without idle zeros."""
    if isinstance(value, (int, float)):
        return f"{value:.2f}".rstrip("0").rstrip(".")
    return str(value)
