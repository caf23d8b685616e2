"""Other libraries, each in its own environment: bullpen depends on none of them."""
