"""The notebook side: the only room that touches IPython."""
