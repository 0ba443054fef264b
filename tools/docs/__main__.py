"""`python -m tools.docs`: build the documentation."""

import sys

from tools.docs.verb import main

if __name__ == "__main__":
    sys.exit(main())
