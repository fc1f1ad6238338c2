"""The only rooms that open a socket."""
