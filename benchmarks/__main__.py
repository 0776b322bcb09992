"""Run the benchmarks that the README quotes, each in a process of its own."""

import subprocess
import sys

QUOTED = ("saddle", "balance_scale", "million")


def main() -> None:
    for name in QUOTED:
        subprocess.run([sys.executable, "-m", f"benchmarks.{name}"], check=True)


if __name__ == "__main__":
    main()
