"""Speed and size, as ratios measured in one run with the goal beside each; `make bench` prints
them, `docs/reference/performance.md` explains them."""
