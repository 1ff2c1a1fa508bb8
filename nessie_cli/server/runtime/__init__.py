"""The runtime of the server: the web server, threads, workers, metrics, logs, TLS."""
