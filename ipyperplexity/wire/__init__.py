"""The wires: JSON and bytes to events, and questions to requests. Pure: no socket, no clock."""
