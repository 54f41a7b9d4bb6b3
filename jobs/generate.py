"""What `ray job submit` runs for staged digital twins to staged samples.

    ray job submit --working-dir . -- python jobs/generate.py --config configs/full.yaml --out /data/corpus

Takes the options of `rvt-ray generate`, and joins the cluster that the job runs in. `ray job submit`
itself exits with 1 for every failure of the job; the job's log and OUT/progress.json tell exit code 3 (too
many failures) apart.
"""

import sys

from rvt_ray.cli import main

if __name__ == "__main__":
    sys.exit(main(["generate", "--set", "run.address=auto", *sys.argv[1:]]))
