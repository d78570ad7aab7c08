"""What every request passes on its way in: who may not come in at all, and what is noted of it."""
