"""`python -m jointbench`: the command line."""

import sys

from jointbench.cli.main import main

sys.exit(main())
