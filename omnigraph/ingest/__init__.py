"""Small data in and out, in this process: loads, exports, and the staging of every change."""
