"""What the commands for models do. Imported when a command runs, since it needs numbers."""
