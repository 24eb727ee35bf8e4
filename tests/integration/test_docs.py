"""Every Python block of README and docs is executed, page by page, as a reader would."""

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]


def python_blocks(page):
    return re.findall(r"^```python\n(.*?)^```", page.read_text(), flags=re.MULTILINE | re.DOTALL)


def run_page(page):
    namespace = {"__name__": "__main__"}
    for block in python_blocks(page):
        exec(compile(block, str(page), "exec"), namespace)
    return namespace


@pytest.mark.parametrize("page", [page for page in PAGES if python_blocks(page)], ids=lambda page: page.name)
def test_python_blocks_run(page):
    run_page(page)


def test_the_users_own_orbit_kernel_likelihood_and_network_learn_together():
    namespace = run_page(ROOT / "docs" / "extending.md")
    low, high = namespace["model"].orbit.ranges()["shift"]
    assert high - low > 0.6  # from 0.04; a shift by the whole length, 1, changes nothing
    assert namespace["accuracy"] > 0.95


def test_the_users_own_orbit_takes_about_twenty_lines():
    (block,) = [block for block in python_blocks(ROOT / "docs" / "extending.md") if "UniformOrbit)" in block]
    assert len(block.splitlines()) <= 20


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_links_between_pages_lead_somewhere(page):
    for target in re.findall(r"\]\((?!https?:|#)([^)#]+)", page.read_text()):
        assert (page.parent / target).exists(), target


def test_ci_runs_the_commands_that_readme_promises():
    script, readme = (ROOT / ".ci" / "run").read_text(), (ROOT / "README.md").read_text()
    environment, *others = [line for line in script.splitlines() if line.startswith(("python3 -m venv", ".venv/bin/"))]
    install, test = others[0], others[-1]
    assert f"{environment}\n{install}\n{test}\n" in readme
