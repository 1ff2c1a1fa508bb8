"""Results as lines, tables and JSON: the only room that knows terminals. Modules here make lines of labelled spans; `terminal` alone writes them."""
