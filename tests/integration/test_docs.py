"""Every Python block of README and docs is executed, page by page, as a reader would."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]


def python_blocks(page):
    return re.findall(r"^```python\n(.*?)^```", page.read_text(), flags=re.MULTILINE | re.DOTALL)


def bash_blocks(name):
    return re.findall(r"^```bash\n(.*?)^```", (ROOT / "docs" / name).read_text(), flags=re.MULTILINE | re.DOTALL)


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


@pytest.mark.slow
def test_the_documentation_builds_without_a_warning(tmp_path):
    pytest.importorskip("sphinx")
    command = [sys.executable, "-m", "sphinx", "-W", "--keep-going", "-q", str(ROOT / "docs"), str(tmp_path)]
    finished = subprocess.run(command, capture_output=True, text=True)
    assert finished.returncode == 0, finished.stderr
    reference = (tmp_path / "api.html").read_text()
    for name in ("orbitune.InvariantClassifier", "orbitune.sample_elbo", "orbitune.orbits.AffineOrbit"):
        assert f'id="{name}"' in reference


@pytest.mark.slow
def test_the_commands_of_the_tutorial_run_in_their_order(tmp_path):
    """As they stand there, but for the installation and the budget; then those of two other pages about such a run."""
    _install, *blocks = bash_blocks("tutorial.md")
    blocks += [*bash_blocks("faq.md"), "rm run/augmentation_torch.py", *bash_blocks("export.md")]
    (tmp_path / "bin").mkdir()
    for name, arguments in (("orbitune", "-c 'from orbitune.cli import main; main()'"), ("python", "")):
        command = tmp_path / "bin" / name
        command.write_text(f'#!/bin/sh\nexec "{sys.executable}" {arguments} "$@"\n')
        command.chmod(0o755)
    env = os.environ | {"PATH": f"{tmp_path / 'bin'}:{os.environ['PATH']}", "OMP_NUM_THREADS": "1"}
    script = "\n".join(["set -e", *blocks]).replace("orbitune fit photos/", "orbitune fit photos/ --budget smoke")
    finished = subprocess.run(["bash", "-c", script], cwd=tmp_path, env=env, capture_output=True, text=True)
    assert finished.returncode == 0, finished.stderr
    assert (tmp_path / "run" / "report.html").exists() and (tmp_path / "train.py").exists()
    assert len((tmp_path / "predictions" / "predictions.csv").read_text().splitlines()) == 501
    new = (tmp_path / "new-predictions" / "predictions.csv").read_text().splitlines()
    assert len(new) == 1 + len(list((tmp_path / "new").iterdir())) > 10
    assert re.search(r"test accuracy 0\.\d+", finished.stdout)
