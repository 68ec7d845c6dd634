"""Two real datasets in this process, then a generated one, larger than its memory budget, on a cluster of two workers.

    python scripts/quickstart.py RESULTS

Uses the command line as a person would, and says each command. RESULTS takes 180 MB.
"""

import shlex
import shutil
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
from sklearn.datasets import load_breast_cancer, load_digits

BUDGET = "64MB"
FEATURES, POINTS = 100, 400_000  # 160 MB of float32
DISK = 300  # MB, at most


def dfeas(*words: str) -> None:
    """Run a command and stop if it fails."""
    print(f"\n$ dfeas {shlex.join(words)}", flush=True)
    done = subprocess.run([sys.executable, "-m", "dfeas", *words], check=False)
    if done.returncode:
        sys.exit(f"quickstart: dfeas ended with exit code {done.returncode}")


def title(text: str) -> None:
    """Print a heading."""
    print(f"\n=== {text}", flush=True)


def picture(results: Path) -> Path:
    """Draw what each pixel of the digits' run adds to the score when its ink grows by one standard deviation."""
    import matplotlib as mpl  # takes a second

    mpl.use("agg")
    from matplotlib import pyplot

    from dfeas import load

    effect = (load(results / "digits-run").coef * load_digits().data.std(axis=0)).reshape(8, 8)
    largest = abs(effect).max()
    pyplot.figure(figsize=(4.2, 3.4), layout="constrained")
    pyplot.imshow(effect / largest, cmap="RdBu", vmin=-1, vmax=1)
    pyplot.colorbar(label="effect on the score, over the largest one")
    pyplot.title("is it a zero? blue pixels say yes")
    pyplot.axis("off")
    pyplot.savefig(results / "zero.png", dpi=130)
    return results / "zero.png"


def main(results: Path) -> None:
    """Run the three examples."""
    began = time.monotonic()
    if results.exists():
        if not (results / "quickstart").exists():
            sys.exit(f"quickstart: {results} exists and is not ours; give another folder")
        shutil.rmtree(results)
    results.mkdir(parents=True)
    if shutil.disk_usage(results).free < DISK << 20:
        sys.exit(f"quickstart: {results} has less than {DISK} MB of disk left")
    (results / "quickstart").write_text("made by scripts/quickstart, which removes and makes it again\n")

    title("Is the digit 0 separable from all other handwritten digits? (1797 images of scikit-learn)")
    digits = load_digits()
    np.savez(results / "digits.npz", X=digits.data, y=digits.target)
    dfeas("ingest", str(results / "digits.npz"), str(results / "digits"), "--positive", "0")
    dfeas("solve", str(results / "digits"), "--out", str(results / "digits-run"))
    dfeas("verify", str(results / "digits-run"))

    title("Is breast cancer separable by mean radius, texture and the other 8 means? (569 cells of scikit-learn)")
    cancer = load_breast_cancer()
    means = (cancer.data[:, :10] - cancer.data[:, :10].mean(axis=0)) / cancer.data[:, :10].std(axis=0)
    np.savez(results / "cancer.npz", X=means, y=cancer.target, feature_names=cancer.feature_names[:10])
    dfeas("ingest", str(results / "cancer.npz"), str(results / "cancer"))
    dfeas("solve", str(results / "cancer"), "--out", str(results / "cancer-run"))
    dfeas("verify", str(results / "cancer-run"))

    title(f"160 MB of generated points with one wrong label, {BUDGET} of memory, a cluster of two worker processes")
    big = str(results / "big")
    dfeas("generate", "one-flip", big, "--features", str(FEATURES), "--points", str(POINTS))
    dfeas("plan", big, "--memory", BUDGET, "--method", "working-set")
    dfeas("solve", big, "--out", str(results / "big-run"), "--local", "2", "--memory", BUDGET)
    dfeas("verify", str(results / "big-run"), "--memory", BUDGET)

    size = sum(path.stat().st_size for path in results.rglob("*") if path.is_file())
    title(f"done in {time.monotonic() - began:.0f} s; {size / 1e6:.0f} MB in {results}, which may be removed")
    for run in sorted(results.glob("*-run")):
        print(f"{run}/result.json  certificate.npz  trace.jsonl")
    print("\nA page about the cells, for a browser:", flush=True)
    subprocess.run([sys.executable, "-m", "dfeas", "report", str(results / "cancer-run")], check=True)
    print(f"\nThe hyperplane between 0 and the other digits, as a picture:\n{picture(results)}")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
