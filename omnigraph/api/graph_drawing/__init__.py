"""Draw small graphs as SVG images: choose what to draw, place the nodes, and render the image."""
