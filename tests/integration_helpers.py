"""Running the command line."""

import os
import subprocess
import sys

from orbitune import cli

BOXES = str.maketrans(dict.fromkeys("╭╮╰╯─│", " "))


def orbitune(*arguments, environment=None):
    command = [sys.executable, "-W", "error::UserWarning", "-c", "from orbitune.cli import main; main()", *arguments]
    env = os.environ | {"OMP_NUM_THREADS": "1", "COLUMNS": "200"} | (environment or {})
    return subprocess.run(command, capture_output=True, text=True, timeout=300, env=env)


def call_main(monkeypatch, capsys, *arguments):
    """The command line within this process: exit code, standard output, and standard error without rich's boxes."""
    monkeypatch.setenv("COLUMNS", "1000")
    monkeypatch.setattr(sys, "argv", ["orbitune", *map(str, arguments)])
    monkeypatch.setattr(cli, "keep_freed_memory", lambda: False)  # of the process that runs the tests
    code = 0
    try:
        cli.main()
    except SystemExit as stop:
        code = stop.code or 0
    out, err = capsys.readouterr()
    return code, out, " ".join(err.translate(BOXES).split())
