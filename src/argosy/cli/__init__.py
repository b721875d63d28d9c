"""The command line: words to calls, results to text, errors to messages and exit codes."""
