"""How the server runs: connections, limits, reading and writing threads, workers, metrics, logs, TLS."""
