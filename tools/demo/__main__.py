"""`python -m tools.demo`, which `./run demo` starts."""

import sys

from tools.demo.verb import main

if __name__ == "__main__":
    sys.exit(main())
