"""`python -m argosy`: the command line."""

import sys

from argosy.cli.main import main

if __name__ == "__main__":
    sys.exit(main())
