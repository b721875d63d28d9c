"""What variants run on, a kind of device per file."""
