"""The folder `.nessie/`, the staged batch, settings, and the environment: the only room that reads any of them."""
