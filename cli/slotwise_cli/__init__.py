"""How does a person or a host ask? One file a command, thin."""
