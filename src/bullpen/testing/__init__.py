"""Test doubles for agents and models, shipped so that programs built on bullpen can be tested too."""
