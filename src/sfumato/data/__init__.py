"""Private data behind public facts: columns, counts, sums, data sets."""
