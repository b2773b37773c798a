"""What goes wrong: for each cause, jobs that have it and jobs that only look like it."""
