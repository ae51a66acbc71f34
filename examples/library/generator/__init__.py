"""The parts of `generate.py`, the generator of the example library."""
