"""The charts of the report."""

from collections.abc import Sequence
from itertools import pairwise

import numpy as np
from markupsafe import Markup

from orbitune.report.history import Path, smooth
from orbitune.report.pictures import data_uri
from orbitune.report.scores import Scores
from orbitune.report.svg import WIDTH, Axes, drawing, label, padded, tag, ticks
from orbitune.report.whatif import Sweep
from orbitune.report.words import Reading

_TURN = (1.0, 1.5, 3.0, 4.5, 6.0, 9.0, 10.0)  # steps of ticks that divide a circle


def range_chart(shown: Reading, path: Path) -> Markup:
    """Low and high bound of a range over the steps at which ranges moved."""
    low, high = ([shown.convert(bounds[side]) for bounds in path.values] for side in (0, 1))
    identity = shown.convert(0.0)
    axes = Axes(_step_range(path), padded([*low, *high, identity]))
    y_ticks = ticks(*axes.y_range, 5, _steps_of(shown))
    digits = max(shown.digits, _decimals(y_ticks))
    description = (
        f"Over {path.steps[-1] + 1:.0f} steps the range went from {_ends(shown, path.values[0])} "
        f"to {_ends(shown, path.values[-1])}."
    )
    return drawing(
        f"{shown.title}: learned range over training",
        description,
        186.0,
        axes.grid(
            ticks(*axes.x_range, 5, whole=True),
            y_ticks,
            lambda step: f"{step:.0f}",
            lambda value: _minus(f"{value:.{digits}f}"),
            "steps",
        ),
        _phase_starts(axes, path),
        tag("line", x1=axes.left, x2=axes.right, y1=axes.y(identity), y2=axes.y(identity), class_="identity"),
        axes.band(path.steps, low, high, "first"),
        axes.line(path.steps, high, "first"),
        axes.line(path.steps, low, "first"),
    )


def sweep_chart(shown: Reading, sweep: Sweep, learned: tuple[float, float], class_names: Sequence[str]) -> Markup:
    """The image along a swept parameter, and the probability of its class and of its rival below."""
    values = sweep.values.tolist()
    tile, top = 42.0, 58.0
    axes = Axes((values[0], values[-1]), (0.0, 1.0), left=44.0, right=WIDTH - 24, top=top, bottom=top + 96)
    parts = [
        tag(
            "image",
            href=data_uri(_as_bytes(picture.numpy())),
            x=axes.x(value) - tile / 2,
            y=4,
            width=tile,
            height=tile,
        )
        for value, picture in sweep.pictures
    ]
    left, right = axes.x(max(learned[0], values[0])), axes.x(min(learned[1], values[-1]))
    inside = tag("rect", x=left, width=max(right - left, 1), y=top, height=axes.bottom - top, class_="learned")
    x_ticks = [fraction * values[-1] for fraction in (-1.0, -0.5, 0.0, 0.5, 1.0)]
    grid = axes.grid(x_ticks, (0.0, 0.5, 1.0), shown.value, lambda p: f"{100 * p:.0f} %")
    curves = []
    for curve, class_ in ((sweep.rival, "second"), (sweep.truth, "first")):
        if curve.low is not None and curve.high is not None:
            curves.append(axes.band(values, curve.low.tolist(), curve.high.tolist(), class_))
        curves.append(axes.line(values, curve.mean.tolist(), class_))
    truth, rival = (class_names[curve.label] for curve in (sweep.truth, sweep.rival))
    middle = len(values) // 2
    description = (
        f"Probability of {truth}: {sweep.truth.mean[0]:.2f} at {shown.value(values[0])}, "
        f"{sweep.truth.mean[middle]:.2f} at {shown.value(values[middle])}, "
        f"{sweep.truth.mean[-1]:.2f} at {shown.value(values[-1])}. Strongest other class: {rival}."
    )
    return drawing(
        f"What if: {shown.title}", description, axes.bottom + 24, *parts, inside, grid, Markup("").join(curves)
    )


def objective_chart(title: str, path: Path) -> Markup:
    """A noisy objective over steps, with its running mean."""
    values = [float(value) for value in path.values]
    mean = smooth(tuple(values), max(1, len(values) // 25))
    # A few wild values at the start must not flatten the rest.
    low = max(min(values), float(np.quantile(values, 0.03)) - 0.5 * float(np.ptp(np.quantile(values, (0.03, 1)))))
    axes = Axes(_step_range(path), padded([low, max(values)]))
    y_ticks = ticks(*axes.y_range, 5)
    digits = _decimals(y_ticks)
    clipped = [max(value, axes.y_range[0]) for value in values]
    return drawing(
        title,
        f"From {values[0]:.3g} to {mean[-1]:.3g} over {path.steps[-1] + 1:.0f} steps.",
        186.0,
        axes.grid(
            ticks(*axes.x_range, 5, whole=True),
            y_ticks,
            lambda step: f"{step:.0f}",
            lambda value: _minus(f"{value:.{digits}f}"),
            "steps",
        ),
        _phase_starts(axes, path),
        axes.line(path.steps, clipped, "first faint"),
        axes.line(path.steps, [max(value, axes.y_range[0]) for value in mean], "first"),
    )


def reliability_chart(title: str, scores: Scores) -> Markup:
    """Accuracy against confidence in bins; the nearer to the diagonal, the more the probabilities can be trusted."""
    axes = Axes((0.0, 1.0), (0.0, 1.0), top=10.0, bottom=206.0, right=WIDTH - 16)
    largest = max(b.count for b in scores.bins)
    bars = []
    for b in scores.bins:
        x, width = axes.x(b.low) + 1, axes.x(b.high) - axes.x(b.low) - 2
        about = f"confidence {100 * b.confidence:.0f} %, right {100 * b.accuracy:.0f} %, {b.count} images"
        bar = {"x": x, "width": width, "y": axes.y(b.accuracy), "height": axes.bottom - axes.y(b.accuracy)}
        bars += [
            tag("rect", tag("title", about), **bar, class_="bar first"),
            # How many images a bar stands for, below the axis.
            tag("rect", x=x, width=width, y=axes.bottom + 36, height=28 * b.count / largest, class_="count"),
        ]
        bars.append(tag("circle", cx=axes.x(b.confidence), cy=axes.y(b.accuracy), r=3, class_="dot"))
    diagonal = axes.line((0.0, 1.0), (0.0, 1.0), "diagonal")
    fifths = (0.0, 0.2, 0.4, 0.6, 0.8, 1.0)
    grid = axes.grid(fifths, fifths, lambda p: f"{100 * p:.0f}", lambda p: f"{100 * p:.0f} %", "confidence in %")
    return drawing(
        title,
        f"Expected calibration error {100 * scores.ece:.1f} %. Bars: how often predictions of a confidence are right.",
        274.0,
        grid,
        *bars,
        diagonal,
    )


def confusion_chart(matrix: np.ndarray, class_names: Sequence[str]) -> Markup:
    """Counts of true (rows) and predicted (columns) classes; mistakes are shaded by their share of the row."""
    size = len(class_names)
    names = [name if len(name) <= 9 else name[:8] + "…" for name in class_names]
    left, top = 18 + 5.6 * max(len(name) for name in names), 34.0
    cell = (WIDTH - left - 6) / size
    parts = [
        label(left + cell * size / 2, 12.0, "predicted", "tick", "middle"),
        label(9.0, top + cell * size / 2, "true", "tick", "middle", transform=f"rotate(-90 9 {top + cell * size / 2})"),
    ]
    narrow = cell < 5.6 * max(len(name) for name in names) + 4
    for i, name in enumerate(names):
        centre = left + (i + 0.5) * cell
        turned = {"transform": f"rotate(-35 {centre:.1f} {top - 6})"} if narrow else {}
        parts.append(label(centre, top - 6, name, "tick", "start" if narrow else "middle", **turned))
        parts.append(label(left - 5, top + (i + 0.5) * cell + 4, name, "tick", "end"))
    for row in range(size):
        total = max(1, int(matrix[row].sum()))
        for column in range(size):
            count, share = int(matrix[row, column]), matrix[row, column] / total
            kind = "right" if row == column else "wrong"
            box = {"x": left + column * cell + 0.75, "y": top + row * cell + 0.75}
            about = f"{class_names[row]} taken for {class_names[column]}: {count}"
            # A mistake made with a fifth of a class is already a deep red.
            strength = share if row == column else min(1.0, 5 * share)
            opacity = 0.04 if count == 0 else 0.12 + 0.88 * strength
            sides = {"width": cell - 1.5, "height": cell - 1.5, "rx": 2}
            parts.append(tag("rect", tag("title", about), **box, **sides, class_=kind, fill_opacity=opacity))
            if count and cell >= 15:
                bold = "strong" if opacity > 0.55 else "weak"
                middle = (box["x"] + (cell - 1.5) / 2, box["y"] + cell / 2 + 3)
                parts.append(label(*middle, str(count), f"cell {bold}", "middle"))
    right = int(np.trace(matrix))
    return drawing(
        "Confusion matrix",
        f"{right} of {int(matrix.sum())} test images are on the diagonal.",
        top + size * cell + 6,
        *parts,
    )


def _ends(shown: Reading, bounds: Sequence[float]) -> str:
    return f"{shown.value(bounds[0])} … {shown.value(bounds[1])}"


def _steps_of(shown: Reading) -> tuple[float, ...]:
    return _TURN if shown.title == "rotation" else (1.0, 2.0, 5.0, 10.0)


def _step_range(path: Path) -> tuple[float, float]:
    return 0.0, max(1.0, path.steps[-1])


def _phase_starts(axes: Axes, path: Path) -> Markup:
    """Where phases or rounds begin, with their titles as tooltips."""
    return Markup("").join(
        tag(
            "line",
            tag("title", title),
            x1=axes.x(step),
            x2=axes.x(step),
            y1=axes.top,
            y2=axes.bottom,
            class_="phase",
        )
        for step, title in path.starts[1:]
    )


def _decimals(values: Sequence[float]) -> int:
    """How many decimals tell neighbouring ticks apart."""
    gap = min((abs(b - a) for a, b in pairwise(values)), default=1.0)
    return max(0, int(np.ceil(-np.log10(gap) - 1e-9))) if gap > 0 else 0


def _minus(text: str) -> str:
    return text.replace("-", "−")


def _as_bytes(image: np.ndarray) -> np.ndarray:
    return (image.clip(0, 1) * 255).round().astype(np.uint8)
