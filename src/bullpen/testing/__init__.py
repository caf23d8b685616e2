"""Stand-ins for the outside world, shipped so that what is built on bullpen can be tested too."""
