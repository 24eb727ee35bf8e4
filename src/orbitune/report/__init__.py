"""What was learned, for people: words and pictures, made from a run directory."""
