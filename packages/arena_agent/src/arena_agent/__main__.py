"""`python -m arena_agent` is the command `arena-agent`."""

import sys

from arena_agent.cli import main

sys.exit(main())
