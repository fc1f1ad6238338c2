"""``ipyperplexity ask "..."`` and its like, for a shell: pipes, exit codes, what a script needs."""
