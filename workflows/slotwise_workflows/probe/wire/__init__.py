"""One request on the wire: where it goes, what it says, what comes back and when."""
