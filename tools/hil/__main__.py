"""`python -m tools.hil`, which `./run hil` starts."""

import sys

from tools.hil.verb import main

if __name__ == "__main__":
    sys.exit(main())
