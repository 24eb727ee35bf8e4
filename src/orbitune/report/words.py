"""Ranges in words a newcomer understands."""

import math
from collections.abc import Mapping

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


def describe_range(name: str, low: float, high: float) -> str:
    """One range, in degrees, percent and fractions of the image."""
    match name:
        case "rotation":
            return f"turned by {math.degrees(low):+.0f}° to {math.degrees(high):+.0f}°"
        case "log_scale_x" | "log_scale_y":
            axis = "width" if name.endswith("x") else "height"
            return f"{axis} scaled to {100 * math.exp(low):.0f} % … {100 * math.exp(high):.0f} %"
        case "shear_x" | "shear_y":
            axis = "sideways" if name.endswith("x") else "up or down"
            return f"slanted {axis} by {low:+.2f} to {high:+.2f} pixels per pixel"
        case "translate_x" | "translate_y":
            side = "width" if name.endswith("x") else "height"
            return f"shifted by {50 * low:+.0f} % to {50 * high:+.0f} % of the image {side}"
        case _:
            return f"{name} from {low:+.3g} to {high:+.3g}"


def verdict(ranges: Mapping[str, tuple[float, float]]) -> str:
    """What may and what may not happen to an image without changing its label."""
    free, tight = [], []
    for name, (low, high) in ranges.items():
        (free if max(-low, high) > NEGLIGIBLE.get(name, 0.1) else tight).append(name)
    sentences = []
    if free:
        changes = "; ".join(describe_range(name, *ranges[name]) for name in free)
        sentences.append(f"An image keeps its label when it is {changes}.")
    else:
        sentences.append("Nothing to be invariant to was found in these data: every range stayed near zero.")
    if free and tight:
        sentences.append(f"Not learned as harmless: {', '.join(name.replace('_', ' ') for name in tight)}.")
    return " ".join(sentences)
