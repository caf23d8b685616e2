"""Files of a folder: kept as they were at a moment, compared, put back, merged. Everything here blocks."""
