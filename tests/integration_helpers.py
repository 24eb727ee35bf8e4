"""Running the command line."""

import os
import subprocess
import sys


def orbitune(*arguments, environment=None):
    command = [sys.executable, "-W", "error::UserWarning", "-c", "from orbitune.cli import main; main()", *arguments]
    env = os.environ | {"OMP_NUM_THREADS": "1", "COLUMNS": "200"} | (environment or {})
    return subprocess.run(command, capture_output=True, text=True, timeout=300, env=env)
