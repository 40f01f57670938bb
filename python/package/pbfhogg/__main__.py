"""The ``pbfhogg`` program: ``pbfhogg``, or ``python -m pbfhogg``."""

import signal
import sys

from . import _pbfhogg


def main() -> int:
    """Run the program with the words of the command line, and return its exit status."""
    # The program handles signals itself, as without Python.
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    return _pbfhogg.main(["pbfhogg", *sys.argv[1:]])


if __name__ == "__main__":
    sys.exit(main())
