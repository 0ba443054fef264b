"""`./run faults`."""

import sys

from tools.faults.verb import main

sys.exit(main())
