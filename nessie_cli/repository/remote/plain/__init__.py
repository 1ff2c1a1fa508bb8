"""The requests to servers without our extensions: plain REST v2, and what replaces them."""
