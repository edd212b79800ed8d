"""The laboratory: published statements and figures beside what a computation says of them."""
