"""The runtime of the server: connections, limits, threads, workers, metrics, logs, TLS."""
