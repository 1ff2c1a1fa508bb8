"""Results to terminal tables, plain text and JSON: the only room that knows terminals."""
