"""What is kept on disk: private files and sqlite databases, in folders of the user's own."""
