"""What `ray job submit` runs for the whole job: sources to finalised corpus.

    ray job submit --working-dir . -- python jobs/build_corpus.py --config configs/full.yaml --source
    /data/videos --out /data/corpus

Takes the options of `rvt-ray build`, and joins the cluster that the job runs in. `ray job submit` itself
exits with 1 for every failure of the job; the job's log and OUT/progress.json tell exit code 3 (too many
failures) apart.
"""

import sys

from rvt_ray.cli import main

if __name__ == "__main__":
    sys.exit(main(["build", "--set", "run.address=auto", *sys.argv[1:]]))
