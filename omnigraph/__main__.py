"""Entry point for `python -m omnigraph` and the `omnigraph` command."""

import gc


def main() -> None:
    """Run the command-line interface and exit."""
    gc.disable()  # imports create many objects but little garbage, so collection would only slow startup
    from omnigraph.cli.main import main as run_program

    gc.enable()
    run_program()


if __name__ == "__main__":
    main()
