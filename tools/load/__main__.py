"""`./run load`."""

import sys

from tools.load.verb import main

if __name__ == "__main__":
    sys.exit(main())
