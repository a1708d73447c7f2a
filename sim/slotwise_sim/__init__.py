"""What would happen? Arrays in, arrays out."""
