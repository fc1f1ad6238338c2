"""Who asks: where credentials come from, never what they are."""
