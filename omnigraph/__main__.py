"""Entry point for `python -m omnigraph` and for the program `omnigraph`, which run the command-line interface."""

import gc


def main() -> None:
    """Run the program and exit."""
    gc.disable()  # importing creates many objects but no garbage
    from omnigraph.cli.main import main as run_program

    gc.enable()
    run_program()


if __name__ == "__main__":
    main()
