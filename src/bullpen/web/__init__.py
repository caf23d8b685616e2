"""The browser's door: `bullpen serve`. Pages and a JSON API over the same conversations; no logic of its own."""
