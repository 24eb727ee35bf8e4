"""Render docs/errors.md from the cases that the tests run."""

import sys
from pathlib import Path

ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT / "tests"))

from user_errors import render  # noqa: E402
from user_mistakes import MISTAKES  # noqa: E402

if __name__ == "__main__":
    (ROOT / "docs" / "errors.md").write_text(render(MISTAKES))
