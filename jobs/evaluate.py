"""What `ray job submit` runs to let RVTagent answer every question of a corpus and to score the answers.

    ray job submit --working-dir . -- python jobs/evaluate.py --config configs/full.yaml --corpus
    /data/corpus --out /data/corpus-agent

Takes the options of `rvt-ray solve --corpus`, and joins the cluster that the job runs in. Run again, it
goes on where it stopped.
"""

import sys

from rvt_ray.cli import main

if __name__ == "__main__":
    sys.exit(main(["solve", "--set", "run.address=auto", *sys.argv[1:]]))
