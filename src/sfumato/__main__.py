"""`python -m sfumato`: the command line."""

from sfumato.cli import main

# Worker processes load this file too, and must not start the command line again.
if __name__ == "__main__":
    main()
