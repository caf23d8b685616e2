"""What a user would pick instead, each in an environment of its own: bullpen depends on none of them."""
