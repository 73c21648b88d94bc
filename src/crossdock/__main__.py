"""`python -m crossdock` is `crossdock`."""

import sys

from crossdock.cli.main import main

sys.exit(main())
