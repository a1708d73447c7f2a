"""How the server behind a log filled its slots, by the log's own times."""
