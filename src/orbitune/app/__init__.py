"""What was learned, live in the browser: a small web server for one person on their own machine."""
