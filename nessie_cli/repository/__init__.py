"""Every verb of a catalog: the protocol, the embedded repository, and `connect`."""
