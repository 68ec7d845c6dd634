"""python tests/fuzz.py --seconds 60 --seed 0: asks dfeas what an oracle knows. Exit code 1 when it fails.

What fails is kept in --out, a file each; --replay FILE asks exactly that again.
"""

import os
import sys
from pathlib import Path

if __name__ == "__main__":
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")  # before anything loads it
    sys.path[0] = str(Path(__file__).parents[1])
    from tests.fuzzing.command import main

    sys.exit(main())
