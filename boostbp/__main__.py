"""The command line, as ``python -m boostbp``."""

from boostbp.cli import main

if __name__ == "__main__":
    main()
