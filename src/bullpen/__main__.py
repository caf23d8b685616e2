"""`python -m bullpen` is the command `bullpen`."""

import sys

from bullpen.cli import main

sys.exit(main())
