"""HTTP messages, limits of bodies, and failures."""
