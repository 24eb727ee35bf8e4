"""``python -m orbitune``: the command line."""

from orbitune.cli import main

if __name__ == "__main__":
    main()
