"""`python -m rvt_ray.cli`."""

import sys

from rvt_ray.cli import main

sys.exit(main())
