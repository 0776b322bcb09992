"""``python -m isbor.cli``."""

from isbor.cli.application import main

if __name__ == "__main__":
    main()
