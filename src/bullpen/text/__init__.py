"""Text from anywhere: cleaned, measured, made safe, and compared as names."""
