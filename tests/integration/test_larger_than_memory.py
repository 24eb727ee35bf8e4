"""A data set that is not held in memory: what a fit keeps there does not grow with the number of images."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.slow

SCRIPT = """
import json, re, sys
from pathlib import Path
import numpy as np
from orbitune.config import make_config
from orbitune.data import allocation, from_items
from orbitune.fitting import fit

def anonymous_mb():  # memory that is no copy of a file
    return int(re.search(r"RssAnon:\\s+(\\d+)", Path("/proc/self/status").read_text())[1]) / 1024

class Noise:
    def __init__(self, num):
        self.num = num
    def __len__(self):
        return self.num
    def __getitem__(self, i):
        return np.full((64, 64, 3), i % 256, np.uint8), i % 2

allocation.MAX_IN_MEMORY = 2**20
values = {"learner": "crossfit", "backbone": "mlp", "baseline_epochs": 0, "predict_orbit_size": 1}
settings = {"max_rounds": 1, "first_epochs": 0.01, "steps": 2, "warm_first": 2, "warm_inputs": 100, "num_inducing": 10}
final = {"network": {"epochs": 0.01}, "head_steps": 2, "num_inducing": 10, "orbit_size": 2}
config = make_config(values | {"settings": settings | {"final": final}})
peaks = []
for num in (6000, 60_000):  # 74 and 737 MB of bytes, four times that as floats
    fit(config, from_items(Noise(num), Noise(500)), Path(sys.argv[1]) / str(num))
    peaks.append(anonymous_mb())
print(json.dumps(peaks))
"""


@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="cannot see what memory is used for")
def test_memory_does_not_grow_with_the_number_of_images(tmp_path):
    finished = subprocess.run([sys.executable, "-c", SCRIPT, str(tmp_path)], capture_output=True, text=True)
    assert finished.returncode == 0, finished.stderr
    small, large = json.loads(finished.stdout)
    assert large - small < 350  # MB, which the allocator may keep or not; the bytes alone are 663 MB more
