"""What can be told of a kernel's text before it runs: waits that are missing, and limits that it breaks."""
