"""The limits of what one user may ask of a gateway process."""
