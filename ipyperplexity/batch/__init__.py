"""Many questions, and their answers as one table."""
