"""Templates that ship with Clew: those of STaRK's MAG and PRIME."""
