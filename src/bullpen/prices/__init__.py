"""What models cost: an estimate for CLIs that report tokens and no money."""
