"""A log in, `Traffic` out."""
