"""``python -m tetrathlon``."""

import sys

from tetrathlon.cli import main

sys.exit(main())
