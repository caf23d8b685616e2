// The private file of `bullpen serve` leads here with #open: who opened it has asked for it already.
"use strict";
if (location.hash === "#open") document.getElementById("enter")?.requestSubmit();
