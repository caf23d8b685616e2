// The private file of `bullpen serve` leads here with #open: who opened it has asked for it already.
"use strict";

if (location.hash === "#open") {
  // A redirect would keep it.
  history.replaceState(null, "", location.pathname);
  document.getElementById("enter")?.requestSubmit();
}
