"""Drawings of small graphs as SVG images: what is drawn, where the nodes are placed, and the image itself."""
